"""Sides of runs as `vllm bench serve --save-result --save-detailed` would have written them, with its keys, units
and definitions: one JSON object a line, as in a file of --append-result. Unknown is null."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from statistics import pstdev
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.record.figures import Distribution
from playground.domain.record.metrics import acceptance_of, request_figures, side_figures
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace, duration_ms
from playground.domain.spec.load_profile import RateProfile
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.sweep.record import Sweep
from playground.i18n import say_message


def vllm_bench_text(record: Run | Sweep, label: str | None = None) -> str:
    """`label`: only the sides that are called so. Raises InvalidInput if there is nothing to write."""
    results = [
        json.dumps(result, ensure_ascii=False)
        for run, values in _runs(record)
        for side in run.sides
        if (label is None or side.label == label) and side.requests
        for result in [_result(run, side, values)]
    ]
    if not results:
        raise InvalidInput("export.no_side", side=label or "-")
    return "\n".join(results) + "\n"


def _runs(record: Run | Sweep) -> Iterator[tuple[Run, Mapping[str, object]]]:
    """The runs, and what a sweep varied in each."""
    if isinstance(record, Run):
        yield record, {}
        return
    names = [knob.name for knob in record.plan.knobs]
    for point in record.points:
        if point.run is not None:
            yield point.run, dict(zip(names, map(str, point.values), strict=True))


def _result(run: Run, side: SideRecord, values: Mapping[str, object]) -> dict[str, Any]:
    figures = side_figures(side, run.measurement)
    traces = side.requests
    backend = (
        "openai" if isinstance(side.settings, AttachedEndpoint) and side.settings.api != "chat" else "openai-chat"
    )
    # vLLM's totals are of the requests that succeeded.
    succeeded = [trace for trace in traces if trace.problem is None]
    seconds = sum(duration_ms(trial.requests) or 0.0 for trial in side.trials) / 1000
    received = _sum([trace.prompt_tokens for trace in succeeded])
    written = _sum([trace.counted_tokens for trace in succeeded])
    return {
        "date": datetime.fromisoformat(run.created_at).astimezone().strftime("%Y%m%d-%H%M%S"),
        "endpoint_type": backend,
        "backend": backend,
        "label": side.label,
        "model_id": side.settings.target,
        "tokenizer_id": side.settings.target,
        "num_prompts": len(traces),
        # As --metadata adds them.
        "playground_run": run.id,
        **({"vllm_version": side.runtime_version} if (side.engine or "").startswith("vLLM") else {}),
        **values,
        **_load(run, side),
        "duration": seconds,
        "completed": len(succeeded),
        "failed": len(traces) - len(succeeded),
        "total_input_tokens": received,
        "total_output_tokens": written,
        "request_throughput": _rate(len(succeeded), seconds),
        "request_goodput": figures.goodput_requests_per_s,
        "output_throughput": _rate(written, seconds),
        "total_token_throughput": _rate(_sum([received, written]), seconds),
        **_details(side),
        **_most(side),
        "rtfx": 0.0,
        **_speculation(side),
        **_latencies(traces),
    }


def _sum(counts: Sequence[int | None]) -> int | None:
    counted = [count for count in counts if count is not None]
    return sum(counted) if len(counted) == len(counts) else None


def _rate(count: int | None, seconds: float) -> float | None:
    return None if count is None or not seconds else count / seconds


def _load(run: Run, side: SideRecord) -> dict[str, Any]:
    profile = side.profile or (run.measurement.profile if run.measurement else None)
    even = isinstance(profile, RateProfile) and profile.arrivals == "constant"
    return {
        "request_rate": profile.requests_per_s if isinstance(profile, RateProfile) else "inf",
        "burstiness": None if even else 1.0,
        "max_concurrency": profile.peak if profile else 1,
    }


def _details(side: SideRecord) -> dict[str, list[Any]]:
    """What --save-detailed adds, a value each request; seconds."""
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            *("input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times"),
            *("queue_times", "generated_texts", "errors"),
        )
    }
    for trial in side.trials:
        for trace in trial.requests:
            ok = trace.problem is None and bool(trace.chunks)
            row = (
                trace.prompt_tokens,
                trace.counted_tokens if ok else 0,
                trace.chunks[0].ms / 1000 if ok else 0.0,
                [gap / 1000 for gap in _gaps(trace)] if ok else [],
                trace.chunks[-1].ms / 1000 if ok else 0.0,
                (trial.started_ms + trace.sent_ms) / 1000,
                0.0,
                trace.output_text,
                say_message(trace.problem) if trace.problem else "",
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def _gaps(trace: RequestTrace) -> list[float]:
    return [after.ms - before.ms for before, after in pairwise(trace.chunks)]


def _most(side: SideRecord) -> dict[str, Any]:
    """The most tokens, and requests under way, in any second from the start."""
    tokens, under_way = Counter[int](), Counter[int]()
    for trial in side.trials:
        for trace in trial.requests:
            if trace.problem is None and trace.chunks:
                begin = trial.started_ms + trace.sent_ms
                for chunk in trace.chunks:
                    tokens[int((begin + chunk.ms) / 1000)] += chunk.tokens or 1
                under_way.update(range(int(begin / 1000), int((begin + trace.chunks[-1].ms) / 1000) + 1))
    return {
        "max_output_tokens_per_s": float(max(tokens.values(), default=0)),
        "max_concurrent_requests": max(under_way.values(), default=0),
    }


def _speculation(side: SideRecord) -> dict[str, Any]:
    acceptance = acceptance_of(side.trials)
    if acceptance is None or acceptance.rate is None:
        return {}
    return {
        "spec_decode_acceptance_rate": acceptance.rate * 100,
        "spec_decode_acceptance_length": acceptance.mean_length,
        "spec_decode_num_drafts": acceptance.drafts,
        "spec_decode_draft_tokens": acceptance.draft_tokens,
        "spec_decode_accepted_tokens": acceptance.accepted_tokens,
        "spec_decode_per_position_acceptance_rates": list(acceptance.per_position),
    }


def _latencies(traces: Sequence[RequestTrace]) -> dict[str, float | None]:
    succeeded = [trace for trace in traces if trace.problem is None]
    requests = [request_figures(trace) for trace in succeeded]
    every: dict[str, list[float | None]] = {
        "ttft": [request.ttft_ms for request in requests],
        "tpot": [request.tpot_ms for request in requests],
        "itl": [*(gap for trace in succeeded for gap in _gaps(trace))],
        "e2el": [request.e2el_ms for request in requests],
    }
    statistics: dict[str, float | None] = {}
    for name, all_values in every.items():
        values = [value for value in all_values if value is not None]
        spread = Distribution.of(values)
        statistics |= {
            f"mean_{name}_ms": spread.mean if spread else None,
            f"median_{name}_ms": spread.p50 if spread else None,
            f"std_{name}_ms": pstdev(values) if values else None,
            f"p99_{name}_ms": spread.p99 if spread else None,
        }
    return statistics

"""A result of `vllm bench serve --save-result`, of any version.

Its TPOT and E2EL are defined as here. Its ITL is the gap between chunks, which is a figure of its own here.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from playground.domain.record.figures import Distribution, SideFigures

from .result import Result, Values, load


def is_of(document: dict[str, Any]) -> bool:
    return "model_id" in document and "request_throughput" in document


def read(values: Values) -> Result:
    """Raises InvalidInput for a value that can't be understood."""
    model = values.text("model_id")
    if model is None:
        raise values.missing("model_id")
    completed, failed = values.count("completed"), values.count("failed")
    if completed is None:
        raise values.missing("completed")
    sent = values.count("num_prompts") or completed + (failed or 0)
    rate = None if values.unlimited("request_rate") else values.number("request_rate")
    return Result(
        created_at=_time(values),
        model=model,
        label=values.text("label") or model.rsplit("/", 1)[-1],
        profile=load(sent, values.count("max_concurrency"), rate),
        figures=_figures(values, completed, failed),
        engine_version=values.text("vllm_version"),
    )


def _time(values: Values) -> datetime:
    """When it was written, by its writer's clock: taken for this host's."""
    text = values.text("date")
    if text is None:
        raise values.missing("date")
    try:
        return datetime.strptime(text, "%Y%m%d-%H%M%S").astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise values.refused("date", text) from error


def _figures(values: Values, completed: int, failed: int | None) -> SideFigures:
    # Where no request succeeded, the tool writes 0.
    rate = values.number if completed else lambda *_: None
    acceptance = values.number("spec_decode_acceptance_rate")
    return SideFigures(
        ttft_ms=_distribution(values, "ttft", completed),
        tpot_ms=_distribution(values, "tpot", None),
        itl_ms=None,
        chunk_gap_ms=_distribution(values, "itl", None),
        e2el_ms=_distribution(values, "e2el", completed),
        output_tokens_per_s=rate("output_throughput"),
        total_tokens_per_s=rate("total_token_throughput"),
        requests_per_s=rate("request_throughput"),
        # Its name had a colon once.
        goodput_requests_per_s=values.number("request_goodput", "request_goodput:"),
        acceptance_rate=None if acceptance is None else acceptance / 100,
        acceptance_rate_per_position=values.shares("spec_decode_per_position_acceptance_rates"),
        mean_acceptance_length=values.number("spec_decode_acceptance_length"),
        draft_coverage=None,
        tokens_per_step=None,
        output_tokens=values.count("total_output_tokens"),
        requests=completed + (failed or 0),
        errors={"failed": failed} if failed else {},
    )


def _distribution(values: Values, name: str, n: int | None) -> Distribution | None:
    """None for 0, which the tool writes where it measured nothing."""
    mean = values.number(f"mean_{name}_ms")
    if not mean:
        return None
    p50 = values.number(f"median_{name}_ms", f"p50_{name}_ms")
    p90, p95, p99 = (values.number(f"p{percent}_{name}_ms") for percent in (90, 95, 99))
    return Distribution(mean, p50, p90, p95, p99, n or None)

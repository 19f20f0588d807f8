"""A benchmark of a GuideLLM report, 0.3 and later: the report with one of its benchmarks.

What GuideLLM calls inter-token latency (the time from the first token to the last, by the tokens after the first)
is TPOT here. Its own "time per output token" counts the wait for the first token, and is not taken.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from playground.domain.record.figures import Distribution, SideFigures

from .result import Result, Values, load


def is_of(document: dict[str, Any]) -> bool:
    return isinstance(document.get("benchmarks"), list)


def read(values: Values) -> Result:
    """Raises InvalidInput for a value that can't be understood."""
    benchmark = values.first("benchmarks")
    # Before 0.4: args and worker.
    config = benchmark.table("config") if "config" in benchmark else benchmark.table("args")
    worker, backend = benchmark.table("worker"), config.table("backend")
    model = backend.text("model") or worker.text("backend_model") or values.table("args").text("model")
    if model is None:
        raise benchmark.missing("config.backend.model")
    metrics, strategy = benchmark.table("metrics"), config.table("strategy")
    totals = metrics.table("request_totals") if "request_totals" in metrics else benchmark.table("request_totals")
    requests, failed = totals.count("total"), totals.count("errored")
    if requests is None:
        raise metrics.missing("request_totals.total")
    kind = strategy.text("type_") or "-"
    rate = strategy.number("rate")
    at_once = 1 if kind == "synchronous" else strategy.count("streams", "max_concurrency")
    return Result(
        created_at=_time(benchmark),
        model=model,
        label=" ".join([model.rsplit("/", 1)[-1], kind, *([f"{rate or at_once:g}"] if rate or at_once else [])]),
        profile=load(requests, at_once, rate, even=kind == "constant"),
        figures=_figures(metrics, requests, failed),
        version=values.table("metadata").text("guidellm_version"),
        address=backend.text("target") or worker.text("backend_target"),
    )


def _time(benchmark: Values) -> datetime:
    seconds = next(
        filter(
            None,
            (
                benchmark.number("start_time"),
                benchmark.table("scheduler_metrics").number("start_time"),
                benchmark.table("run_stats").number("start_time"),
            ),
        ),
        None,
    )
    if seconds is None:
        raise benchmark.missing("start_time")
    try:
        return datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise benchmark.refused("start_time", seconds) from error


def _figures(metrics: Values, requests: int, failed: int | None) -> SideFigures:
    def rate(name: str) -> float | None:
        return metrics.table(name).table("successful").number("mean") or None

    latency = _distribution(metrics, "request_latency", 1000)
    counted = metrics.table("output_token_count").table("successful")
    return SideFigures(
        ttft_ms=_distribution(metrics, "time_to_first_token_ms"),
        tpot_ms=_distribution(metrics, "inter_token_latency_ms"),
        itl_ms=None,
        chunk_gap_ms=None,
        e2el_ms=latency,
        output_tokens_per_s=rate("output_tokens_per_second"),
        total_tokens_per_s=rate("tokens_per_second"),
        requests_per_s=rate("requests_per_second"),
        goodput_requests_per_s=None,
        acceptance_rate=None,
        acceptance_rate_per_position=None,
        mean_acceptance_length=None,
        draft_coverage=None,
        tokens_per_step=None,
        output_tokens=counted.count("total_sum"),
        requests=requests,
        errors={"failed": failed} if failed else {},
    )


def _distribution(metrics: Values, name: str, factor: float = 1) -> Distribution | None:
    """Of the requests that succeeded. None for 0, which GuideLLM writes where it measured nothing."""
    summary = metrics.table(name).table("successful")
    mean, percentiles = summary.number("mean"), summary.table("percentiles")
    if not mean:
        return None
    reported = (summary.number("median"), *(percentiles.number(name) for name in ("p90", "p95", "p99")))
    p50, p90, p95, p99 = (None if value is None else value * factor for value in reported)
    return Distribution(mean * factor, p50, p90, p95, p99, summary.count("count") or None)

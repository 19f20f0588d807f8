"""Settings of the engine's path that vLLM refuses beside this speculation, and what it withholds by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.same_path import unsupported, withheld
from playground.domain.spec.settings import EngineSettings

from .issue import FitIssue

Schedule = Sequence[tuple[int, int, int]]


def path_issues(settings: EngineSettings, version: str, device: str, *, schedules: bool) -> Iterator[FitIssue]:
    """`schedules`: whether this vLLM can choose k by the size of the batch."""
    knobs, method = settings.knobs, settings.speculation.method
    lacks, lost = unsupported(settings, version), withheld(settings, version, device)
    if device != "cpu":
        if knobs.async_scheduling and lacks.async_scheduling:
            yield _refused("preflight.no_async", "knobs.async_scheduling", method=method, version=version)
        if knobs.use_v2_model_runner and lacks.v2_model_runner:
            yield _refused("preflight.v1_only", "knobs.use_v2_model_runner", method=method, version=version)
        if knobs.use_v2_model_runner is False and method == "dspark":
            yield _refused("preflight.v2_only", "knobs.use_v2_model_runner", method=method)
    if lost.anything:
        parts = [Message("path.async_scheduling")] if lost.async_scheduling else []
        parts += [Message("preflight.runner_v2")] if lost.v2_model_runner else []
        what = parts[0] if len(parts) == 1 else Message("path.and", {"first": parts[0], "second": parts[1]})
        yield FitIssue(Message("preflight.withheld", {"method": method, "what": what}), "note")
    schedule: Schedule | None = settings.speculation.model_dump().get("num_speculative_tokens_per_batch_size")
    if schedule is not None:
        yield from _schedule(schedule, settings, version, schedules)


def _schedule(schedule: Schedule, settings: EngineSettings, version: str, known: bool) -> Iterator[FitIssue]:
    key = "speculation.num_speculative_tokens_per_batch_size"
    if not known:
        yield _refused("preflight.no_schedule", key, version=version)
    elif not _covers(schedule):
        yield _refused("preflight.schedule_ranges", key)
    elif (settings.knobs.data_parallel_size or 1) > 1:
        yield FitIssue(Message("preflight.schedule_ignored"), "warning", False, ((Change(key, None),),))


def _covers(schedule: Schedule) -> bool:
    """As vLLM checks it: the ranges begin at 1, have no end before their start, and do not overlap."""
    end = 0
    for first, last, _ in sorted(schedule):
        if not end < first <= last:
            return False
        end = last
    return bool(schedule) and min(schedule)[0] == 1


def _refused(message_id: str, key: str, **params: object) -> FitIssue:
    return FitIssue(Message(message_id, params), "blocking", True, ((Change(key, None),),))

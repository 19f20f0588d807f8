"""Ratios with their uncertainty, from the rounds of runs and sweeps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from statistics import fmean

from playground.domain.record.run import Run, Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.change import Value
from playground.domain.spec.load_profile import LoadProfile
from playground.domain.spec.workload import Conversation, Objective
from playground.domain.stats.ratios import Ratio
from playground.domain.stats.rounds import rounds_of, whole_rounds
from playground.domain.stats.verdicts import RoundValues, compare
from playground.domain.sweep.record import Sweep

# One trial, and how its load was sent -> a mean latency in ms, None where unknown.
Latency = Callable[[Trial, LoadProfile], float | None]


def speed_up(run: Run, side: int = 1, over: int = 0, by: Objective | None = None) -> Ratio | None:
    """The speed-up of one side over another, by their positions. `by` defaults to the workload's objective."""
    values = [round_.values for round_ in rounds_of(run, by)]
    return _compared(run, values, side, over, by or run.workload.objective)


def speed_ups(sweep: Sweep) -> dict[int, Ratio]:
    """The second side's speed-up over the first, by the first knob's numeric values; unknown ones are left out."""
    ratios = {}
    for point in sweep.points:
        value, ratio = point.values[0], speed_up(point.run) if point.run is not None else None
        if isinstance(value, int) and ratio is not None:
            ratios[value] = ratio
    return ratios


def measured_at(sweep: Sweep, value: Value) -> Run | None:
    """The run at this value of the first knob."""
    return next((point.run for point in sweep.points if point.values[0] == value), None)


def latencies(run: Run, latency: Latency) -> list[RoundValues]:
    """The sides' latencies in each whole round: label -> ms."""
    assert run.measurement is not None
    common = run.measurement.profile
    return [
        {side.label: latency(side.trials[number], side.profile or common) for side in run.sides}
        for number in range(whole_rounds(run))
    ]


def latency_ratio(run: Run, latency: Latency) -> Ratio | None:
    """The second side's latency over the first side's: below 1 where the second answers sooner."""
    # As with TTFT, lower is better: a speed-up is the first side's time over the second's.
    gain = _compared(run, latencies(run, latency), 1, 0, "ttft")
    return gain and gain.inverse


def _compared(run: Run, values: Sequence[RoundValues], side: int, over: int, by: Objective) -> Ratio | None:
    return Ratio.of_verdict(compare(values, run.sides[side].label, run.sides[over].label, by))


def mean_answer(trial: Trial, profile: LoadProfile) -> float | None:
    """The mean time from a request's send until its answer is available (ms); None if any is unknown."""
    ends = [_end_ms(trace) for trace in trial.requests]
    known = [end for end in ends if end is not None]
    if not known or len(known) < len(ends):
        return None
    available = profile.available_ms(known)
    return fmean(at_ms - trace.sent_ms for at_ms, trace in zip(available, trial.requests, strict=True))


def mean_of(conversations: Collection[Conversation]) -> Latency:
    """A latency: the mean E2EL of the requests with one of these conversations."""

    def latency(trial: Trial, profile: LoadProfile) -> float | None:
        traces = [trace for trace in trial.requests if trace.conversation in conversations]
        ends = [_end_ms(trace) for trace in traces]
        known = [end - trace.sent_ms for end, trace in zip(ends, traces, strict=True) if end is not None]
        return fmean(known) if known and len(known) == len(traces) else None

    return latency


def _end_ms(trace: RequestTrace) -> float | None:
    """When the last token arrived, since the trial's start; None where the request failed."""
    return trace.sent_ms + trace.chunks[-1].ms if trace.chunks and trace.problem is None else None


def conversations_of(run: Run) -> set[Conversation]:
    """The conversations of all the run's requests."""
    return {trace.conversation for side in run.sides for trace in side.requests}

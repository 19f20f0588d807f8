"""The claim that a run or a sweep was made to test, and whether it holds here."""

from __future__ import annotations

from playground import presets
from playground.domain.claims.claims import CLAIMS, Claimed, judged
from playground.domain.errors import InvalidInput
from playground.domain.record.run import Run
from playground.domain.spec.case import Side
from playground.domain.spec.measurement import Measurement
from playground.domain.sweep.record import Sweep
from playground.presets import Preset

ENDED = ("done", "stopped")


def claim_of(subject: Run | Sweep) -> Claimed | None:
    """The claim; None unless this is a claim's experiment, unchanged from its preset, and has ended."""
    if subject.preset is None or subject.status not in ENDED:
        return None
    runs = [point.run for point in subject.points] if isinstance(subject, Sweep) else [subject]
    if any(trial.summary for run in runs if run is not None for side in run.sides for trial in side.trials):
        # A recording: the requests, by which a claim is judged, were not kept.
        return None
    try:
        preset = presets.load(subject.preset)
    except InvalidInput:
        # A visitor's own preset, or one that no longer exists: only its name is known.
        return None
    if preset.claim is None:
        return None
    claim = CLAIMS[preset.claim]
    if isinstance(subject, Sweep):
        if claim.of_sweep is not None and _is_sweep_of(preset, subject):
            return judged(preset.claim, claim.of_sweep(subject))
    elif claim.of_run is not None and _is_run_of(preset, subject):
        return judged(preset.claim, claim.of_run(subject))
    return None


def _is_run_of(preset: Preset, run: Run) -> bool:
    """Whether the run is the preset's experiment: with other settings or another workload it does not test the
    claim. Its time and rounds may differ."""
    sides = tuple(Side(label=side.label, engine=side.settings, profile=side.profile) for side in run.sides)
    return run.workload == preset.workload and sides == preset.sides and _same_load(run.measurement, preset)


def _is_sweep_of(preset: Preset, sweep: Sweep) -> bool:
    case, plan = sweep.case, preset.sweep
    same = case.workload == preset.workload and case.sides == preset.sides
    return same and plan is not None and plan.knobs == sweep.plan.knobs and _same_load(case.measurement, preset)


def _same_load(measurement: Measurement | None, preset: Preset) -> bool:
    if measurement is None:
        return False
    usual = preset.measurement
    return (measurement.prompts, measurement.profile) == (usual.prompts, usual.profile)

"""Small sweeps over attached sides."""

from __future__ import annotations

from playground.domain.spec.case import Case, Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import Sweep
from playground.runs.sweep import new_sweep


def case(*sides: Side, tokens: int = 6, **measurement: object) -> Case:
    plan = {"max_rounds": 6, "target_width": 2, "check_outputs": False, **measurement}
    return Case(
        sides=sides,
        workload=Workload(prompt="x", sampling=Sampling(max_tokens=tokens)),
        measurement=Measurement(profile=ConcurrencyProfile(requests=2)).model_copy(update=plan),
    )


def sweep_over(made: Case, *values: object, name: str = "concurrency", budget_s: float = 600) -> Sweep:
    plan = SweepPlan.model_validate({"knobs": [{"name": name, "values": values}], "budget_s": budget_s})
    return new_sweep(plan, made, "p")

"""Points that places lose are taken again elsewhere; stand-ins measure at once here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from support.endpoints import attached
from support.sweep_cases import case, sweep_over
from support.waiting import until

from playground.domain.errors import WorkFailed
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.case import Case
from playground.domain.sweep.record import Sweep
from playground.report.exports.files import exported
from playground.runs.host import Host


@dataclass(eq=False)
class StandIn:
    """Brings a run that failed for each point, which is a result; none for those that it loses. `changed` answers
    something else than it was sent."""

    name: str
    loses: tuple[int, ...] = ()
    changed: bool = False
    taken: list[int] = field(default_factory=list)

    async def measure(self, case: str, stopping: asyncio.Event, within_s: float) -> str:
        sent = Case.model_validate_json(case)
        peak = sent.measurement.profile.peak
        self.taken.append(peak)
        await asyncio.sleep(0.01)
        if peak in self.loses:
            raise WorkFailed("elsewhere.no_answer", place=self.name, code="255", detail="gone")
        workload = sent.workload.model_copy(update={"prompt": "other"} if self.changed else {})
        sides = [SideRecord(side.label, side.engine) for side in sent.sides]
        made = Run("id", "2026-12-01T09:00:00+00:00", "measured", workload, sides, measurement=sent.measurement)
        made.status, made.problem = "failed", Message("failure.unknown")
        return exported(made, "json")


def sweep_of(points: int) -> Sweep:
    url = "http://127.0.0.1:1"
    return sweep_over(case(attached("a", url), attached("b", url)), *range(1, points + 1))


async def swept(host: Host, sweep: Sweep, *places: StandIn) -> list[str]:
    """The points' causes."""
    sweeping = host.sweep_run(sweep, places)
    await host.start(sweeping, "a test")
    await until(lambda: sweeping.finished, within_s=30)
    return [point.run.problem.message_id if point.run and point.run.problem else "-" for point in sweep.points]


async def test_a_point_that_every_place_loses_fails(host: Host) -> None:
    """It is taken three times in all, and costs the others nothing."""
    east, west = StandIn("east", loses=(3,)), StandIn("west", loses=(3,))
    sweep = sweep_of(8)
    causes = await swept(host, sweep, east, west)
    assert causes == ["failure.unknown"] * 2 + ["elsewhere.no_answer"] + ["failure.unknown"] * 5
    assert (east.taken + west.taken).count(3) == 3
    assert sweep.status == "done"


async def test_a_place_that_is_gone_is_used_no_more(host: Host) -> None:
    gone, left = StandIn("gone", loses=tuple(range(1, 9))), StandIn("left")
    sweep = sweep_of(8)
    assert await swept(host, sweep, gone, left) == ["failure.unknown"] * 8
    assert (sweep.status, len(gone.taken)) == ("done", 2)


async def test_another_answer_is_refused(host: Host) -> None:
    sweep = sweep_of(2)
    assert await swept(host, sweep, StandIn("old", changed=True)) == ["-", "-"]
    assert sweep.problem is not None
    assert sweep.problem.params["cause"].message_id == "elsewhere.other"


async def test_a_sweep_whose_places_are_gone_goes_on_elsewhere(host: Host) -> None:
    """As it does after this host's process was killed: nothing is written of a point before it has come."""
    sweep = sweep_of(4)
    await swept(host, sweep, StandIn("gone", loses=(3, 4)))
    stored = host.history.sweep(sweep.id)
    assert stored is not None
    assert (stored.status, stored.remaining) == ("stopped", 2)
    left = StandIn("left")
    await swept(host, stored, left)
    assert (stored.status, left.taken) == ("done", [3, 4])

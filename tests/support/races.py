"""Races between two sides that a test starts, and waits for."""

from __future__ import annotations

from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Sampling, Workload
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from support.waiting import until

SIDES = (
    Side(label="off", engine=EngineSettings(target="model")),
    Side(label="ngram", engine=EngineSettings(target="model", speculation=Ngram())),
)


def workload(tokens: int = 20) -> Workload:
    return Workload(prompt="x", sampling=Sampling(max_tokens=tokens))


async def finished(comparison: Comparison) -> Comparison:
    await until(lambda: comparison.finished)
    return comparison


async def raced(host: Host, tokens: int = 20, sides: tuple[Side, ...] = SIDES) -> Comparison:
    comparison = host.comparison(sides, workload(tokens), preset="p")
    await host.start(comparison, "a test")
    return await finished(comparison)


async def streaming(comparison: Comparison) -> None:
    """Until every side has begun to answer."""

    def answering() -> bool:
        assert not comparison.finished, comparison.run.problem
        return all(side.requests and side.requests[0].chunks for side in comparison.run.sides)

    await until(answering)

"""How far the machines agree on which a sweep's points were measured. Nothing here is stored."""

from __future__ import annotations

from dataclasses import dataclass
from math import asinh, exp, hypot, log

from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.stats.verdicts import LOWER_IS_BETTER

from .record import Sweep
from .result import GeometricMean, PointResult


def node_of(run: Run | None) -> str:
    """The machine's name, where another than the history's measured the run; else empty."""
    return str(run.machine.get("node", "")) if run is not None else ""


@dataclass(frozen=True, slots=True)
class NodeRatio:
    """How fast a side is on a node, over how fast it is on the first: above 1 is faster. The interval is 95%;
    None: too few rounds."""

    side: str
    ratio: float
    interval: tuple[float, float] | None

    def agrees(self, resolution: float) -> bool:
        """Whether the log is within the resolution, or as far as it is known may be 0."""
        if self.interval is None:
            return False
        return abs(log(self.ratio)) <= resolution or self.interval[0] <= 1 <= self.interval[1]

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" ({self.interval[0]:.3f}-{self.interval[1]:.3f})"
        return f"{self.side} {self.ratio:.3f}x{ends}"


@dataclass(frozen=True, slots=True)
class NodeAgreement:
    """A node against the first one, both at the sweep's first point. Without ratios it has no measurement of that
    point. `pooled`: what was measured there may be compared with what the first node measured."""

    node: str
    first: str
    ratios: tuple[NodeRatio, ...]
    pooled: bool

    @property
    def statement(self) -> Message:
        if not self.ratios:
            return Message("elsewhere.no_anchor", {"node": self.node})
        ratios = ", ".join(map(str, self.ratios))
        message_id = "elsewhere.agree" if self.pooled else "elsewhere.differ"
        return Message(message_id, {"node": self.node, "first": self.first, "ratios": ratios})


def agreements(sweep: Sweep, results: tuple[PointResult, ...]) -> list[NodeAgreement]:
    """One for each node but the first, which measured the sweep's first point. The resolution is half of the
    relative width at which the sweep's measurements stop."""
    nodes = dict.fromkeys(node_of(result.run) for result in results if result.sides)
    if len(nodes) < 2:
        return []
    of_node = {node_of(run): PointResult.of(0, (), run) for run in reversed(sweep.anchors)}
    if results[0].sides:
        of_node = {node_of(results[0].run): results[0], **of_node}
        nodes = {node_of(results[0].run): None, **nodes}
    first = next((node for node in nodes if node in of_node), next(iter(nodes)))
    resolution = asinh(sweep.case.measurement.target_width / 2)
    others = []
    for node in nodes:
        if node != first:
            ratios = _ratios(sweep, of_node[node], of_node[first]) if {node, first} <= of_node.keys() else ()
            agree = bool(ratios) and all(ratio.agrees(resolution) for ratio in ratios)
            others.append(NodeAgreement(node, first, ratios, agree))
    return others


def _ratios(sweep: Sweep, there: PointResult, first: PointResult) -> tuple[NodeRatio, ...]:
    sign = -1 if sweep.case.workload.objective in LOWER_IS_BETTER else 1
    ratios = []
    for side in there.sides:
        other = first.side(side.label)
        if other is not None and side.objective.value is not None and other.objective.value is not None:
            middle = sign * log(side.objective.value / other.objective.value)
            halves = (_half(side.objective), _half(other.objective))
            half = None if halves[0] is None or halves[1] is None else hypot(halves[0], halves[1])
            ends = None if half is None else (exp(middle - half), exp(middle + half))
            ratios.append(NodeRatio(side.label, exp(middle), ends))
    return tuple(ratios)


def _half(mean: GeometricMean) -> float | None:
    """Half of the interval of the log."""
    return None if mean.interval is None else log(mean.interval[1] / mean.interval[0]) / 2

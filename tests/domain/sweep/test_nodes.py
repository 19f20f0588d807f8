"""Points of several machines: how far those agree, and what is concluded without those that do not."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import pytest
from support.schema import check
from support.sweep_run import made_sweep

from playground.domain.record.run import Run
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.i18n import LOCALES, say_message
from playground.report.sweep import conclusions_of, sweep_document

MACHINE = {"cpu": "c", "cores": 2, "native_bf16": False, "memory_bytes": 1 << 33, "gpus": [], "system": "s"}


def on_two_nodes(*, slower: float | None) -> Sweep:
    """k = 2 was measured on "west". At the first point chunks come `slower` times as late there; None: that
    point was not measured there."""
    sweep = made_sweep("k=1,2,3")
    for point, node in zip(sweep.points, ("east", "west", "east"), strict=True):
        assert point.run is not None
        point.run.machine = {**MACHINE, "node": node}
    first = sweep.points[0].run
    assert first is not None
    if slower is not None:
        sweep.anchors = [_slower(first, slower)]
    return sweep


def _slower(run: Run, times: float) -> Run:
    run = deepcopy(run)
    run.id, run.machine = "anchor", {**MACHINE, "node": "west"}
    for trace in (trace for side in run.sides for trial in side.trials for trace in trial.requests):
        trace.chunks[:] = [replace(chunk, ms=chunk.ms * times) for chunk in trace.chunks]
    return run


@pytest.mark.parametrize(
    ("slower", "said", "pooled"),
    [(1.0, "elsewhere.agree", True), (1.2, "elsewhere.differ", False), (None, "elsewhere.no_anchor", False)],
)
def test_points_of_nodes_that_differ_are_not_pooled(slower: float | None, said: str, pooled: bool) -> None:
    analysis = SweepAnalysis.of(on_two_nodes(slower=slower))
    [node] = analysis.nodes
    assert (node.node, node.first, node.pooled) == ("west", "east", pooled)
    if slower is not None:
        assert [ratio.side for ratio in node.ratios] == ["plain", "quick"]
        assert all(ratio.ratio == pytest.approx(1 / slower) for ratio in node.ratios)
    assert [number for series in analysis.series for number in series.points] == ([0, 1, 2] if pooled else [0, 2])
    sentences = conclusions_of(analysis)
    assert said in [sentence.message_id for sentence in sentences]
    assert all(say_message(sentence, locale) for sentence in sentences for locale in LOCALES)
    document = check("sweep", sweep_document(analysis))
    assert [each["pooled"] for each in document["nodes"]] == [pooled]
    assert [point["node"] for point in document["points"]] == ["east", "west", "east"]
    # Its figures stand, whatever is concluded.
    assert all(point["sides"] for point in document["points"])


def test_one_machine_says_nothing_of_nodes() -> None:
    assert SweepAnalysis.of(made_sweep("k=1,2")).nodes == []
    assert "nodes" not in sweep_document(SweepAnalysis.of(made_sweep("k=1,2")))

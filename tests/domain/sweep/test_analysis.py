"""What a sweep comes to is computed once for each of its states, whoever reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.sweep_run import base_case, made_sweep

from playground.config import Config
from playground.domain.speculation.prediction import PredictionError, predict
from playground.domain.sweep import record, result, series
from playground.domain.sweep.analysis import SweepAnalysis
from playground.runs.host import Host
from playground.runs.sweep import SweepRun, estimate, new_sweep, order_of
from playground.ui.sweep.painter import SweepPainter


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[None]]:
    """Of a module's function: what it returns grows by one with each call."""

    def counted(module: Any, name: str) -> list[None]:
        calls: list[None] = []
        function = getattr(module, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            calls.append(None)
            return function(*arguments, **named)

        monkeypatch.setattr(module, name, counting)
        return calls

    return counted


def test_a_repaint_predicts_each_point_once(config: Config, count: Callable[[Any, str], list[None]]) -> None:
    sweep = made_sweep("k=1..5", failed=(3,))
    calls = count(series, "predict")
    painter = SweepPainter(config, sweep, "en")
    assert painter.paint() is not None
    assert len(calls) == len(sweep.points)
    assert painter.paint() is None


def test_a_settled_run_is_read_once_by_all_repaints(
    config: Config, count: Callable[[Any, str], list[None]]
) -> None:
    sweep = made_sweep("k=1,2")
    calls = count(result, "rounds_of")
    for _ in range(2):
        assert SweepPainter(config, sweep, "en").paint() is not None
    # By the objective and by throughput.
    assert len(calls) == 2 * len(sweep.points)


def test_a_start_builds_the_points_once(config: Config, count: Callable[[Any, str], list[None]]) -> None:
    """For the plan, the estimate, the run and its order."""
    calls, host = count(record, "points_of"), Host(config)
    sweep = new_sweep(made_sweep("concurrency=1,2").plan, base_case())
    estimate(host.history, sweep, "cpu")
    SweepRun(config, host.pool, host.history, sweep, "cpu", lambda comparison: None)
    order_of(sweep)
    assert len(calls) == 1


def test_errors_are_those_of_each_measured_k_left_out() -> None:
    """The prediction that stands beside a measured k is the one that its error is of."""
    analysis = SweepAnalysis.of(made_sweep("quick.k=1,2,4,8"))
    [group] = analysis.certain_series
    points = list(group.points.values())
    assert analysis.prediction_errors == [
        PredictionError(prediction, point.speed_up)
        for point in points
        for prediction in predict([other for other in points if other.k != point.k], [point.k])
    ]
    assert len(analysis.prediction_errors) == 4
    assert SweepAnalysis.of(made_sweep("quick.k=1,8")).prediction_errors == []

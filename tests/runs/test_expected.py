"""What a run will take, as it is said before it begins."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from support.measured_run import TURN_MS, measured_run
from support.schema import check

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import WorkFailed
from playground.domain.fit.memory import GIB
from playground.domain.message import Message
from playground.domain.record.run import Run
from playground.domain.spec.case import Case
from playground.domain.spec.settings import EngineSettings
from playground.domain.stats.rounds import round_seconds
from playground.domain.sweep.budget import BESIDE, START_S
from playground.domain.sweep.order import engines_of
from playground.domain.sweep.plan import Knob, SweepPlan
from playground.engine.devices import Gpu, Machine
from playground.i18n import LOCALES, say_message
from playground.report import expected as report
from playground.runs.expected import Expected, expected
from playground.runs.sweep import estimate, new_sweep
from playground.store import History
from playground.ui.shared.measured_painter import MeasuredPainter

CPU = Machine("a processor", (0, 1), False, 8 * GIB, ())
GPU = Machine("a processor", (0, 1), False, 8 * GIB, (Gpu(0, "a card", 80 * GIB, 80 * GIB),))
ROUND_S = 2 * TURN_MS / 1000


def case_of(run: Run, **more: Any) -> Case:
    assert run.measurement is not None
    return Case(
        sides=run.settings,
        workload=run.workload,
        measurement=run.measurement.model_copy(update={"budget_s": 60.0, **more}),
    )


def measured_before(history: History, **sides: Any) -> Run:
    """A measured run whose engines took 40 s and 50 s to start."""
    run = measured_run()
    run.machine = CPU.as_record()
    for side, ready_after_s in zip(run.sides, (40.0, 50.0), strict=True):
        side.device, side.ready_after_s = "cpu", ready_after_s
    history.finish(run)
    return run


def test_nothing_is_known_at_first(history: History) -> None:
    case = case_of(measured_run())
    found = expected(history, CPU, case, Counter())
    assert (found.starts, found.starts_s, found.known_starts) == (2, START_S["cpu"], 0)
    assert found.round_s is found.rounds is found.least_s is None
    assert found.most_s == pytest.approx(START_S["cpu"] + (1 + BESIDE) * 60)


def test_by_the_runs_before(history: History) -> None:
    run = measured_before(history)
    assert round_seconds(run) == pytest.approx(ROUND_S)
    found = expected(history, CPU, case_of(run), Counter())
    # Engines on a processor start at once.
    assert (found.starts, found.starts_s, found.known_starts) == (2, 45.0, 2)
    assert found.round_s == pytest.approx(ROUND_S)
    assert found.rounds == run.measurement.max_rounds if run.measurement else 0
    assert found.least_s == pytest.approx(45 + (1 + BESIDE) * 6 * ROUND_S)
    again = expected(history, CPU, case_of(run), engines_of(case_of(run)))
    assert (again.starts, again.starts_s) == (0, 0.0)
    assert report.start_sentence(again).message_id == "expected.no_starts"


@pytest.mark.parametrize(
    "change",
    [
        {"prompts": "code"},
        {"profile": {"kind": "concurrency", "requests": 9}},
        {"target": "another"},
        {"machine": {**CPU.as_record(), "cpu": "another"}},
        {"status": "stopped"},
    ],
)
def test_another_measurement_says_nothing(history: History, change: dict[str, Any]) -> None:
    run = measured_before(history)
    case = case_of(run)
    profile_or_prompts = {key: value for key, value in change.items() if key in ("prompts", "profile")}
    other = measured_run(**profile_or_prompts)
    other.id = "20261129-130000-abcd"
    other.machine = change.get("machine", CPU.as_record())
    other.status = change.get("status", "done")
    if "target" in change:
        for side in other.sides:
            side.settings = EngineSettings(target="another")
    # Far slower than the one that counts.
    for side in other.sides:
        for trial in side.trials:
            trial.started_ms *= 100
    history.finish(other)
    found = history.trial_seconds(case, CPU.as_record())
    assert found == pytest.approx(TURN_MS / 1000)


@pytest.mark.parametrize(
    ("knobs", "starts"),
    [({}, 1), ({"gpu_memory_utilization": 0.4}, 2)],
)
def test_engines_that_start_one_after_the_other_on_a_card(
    history: History, knobs: dict[str, float], starts: int
) -> None:
    case = case_of(measured_run())
    engine = EngineSettings.model_validate({"target": "m", "knobs": knobs})
    sides = tuple(side.model_copy(update={"engine": engine}) for side in case.sides)
    found = expected(history, GPU, case.model_copy(update={"sides": sides}), Counter())
    assert found.starts_s == starts * START_S["cuda"]


def test_a_budget_too_small_is_said_before(history: History) -> None:
    run = measured_before(history)
    found = expected(history, CPU, case_of(run, budget_s=9.0), Counter())
    assert found.rounds == 4
    sentence = report.measured_sentence(found)
    assert sentence.message_id == "expected.short"
    for locale in LOCALES:
        text = say_message(sentence, locale)
        assert all(number in text for number in ("9", "4", "6", "12"))


def test_a_history_that_cannot_be_read(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(*_: object) -> float:
        raise WorkFailed("history.locked", path="p")

    monkeypatch.setattr(history, "trial_seconds", locked)
    assert expected(history, CPU, case_of(measured_run()), Counter()).round_s is None


@pytest.mark.parametrize("locale", LOCALES)
def test_sentences(history: History, locale: Any) -> None:
    known = Expected(2, 45.0, 3, ROUND_S, case_of(measured_run(), budget_s=900.0).measurement)
    guessed = Expected(2, 120.0, 0, None, known.measurement)
    for each, parts in ((known, ("45", "3", "61", "21")), (guessed, ("2", "22"))):
        text = say_message(report.start_sentence(each), locale) + say_message(
            report.measured_sentence(each), locale
        )
        assert all(part in text for part in parts), text


def test_the_command_line_says_it_and_starts_nothing(capsys: pytest.CaptureFixture[str], config: Config) -> None:
    assert main(["compare", "smollm2-ngram", "--mode", "measured", "--plan"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert main(["compare", "smollm2-ngram", "--plan", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    check("compare_plan", document)
    assert document["engine_starts"] == 2
    assert not list(config.state.glob("*.log"))


@pytest.mark.parametrize(
    ("done", "budget_s", "left"),
    [
        (0, 900.0, ""),
        (2, 900.0, Message("measured.left_least", {"rounds": 6, "time": "0:08"})),
        (6, 40.0, Message("measured.left_most", {"time": "0:36"})),
        (2, 9.0, Message("measured.left_few", {"rounds": 4, "least": 6})),
    ],
)
@pytest.mark.parametrize("locale", LOCALES)
def test_what_is_left_while_it_measures(
    config: Config, locale: Any, done: int, budget_s: float, left: Message | str
) -> None:
    run = measured_run(done, max_rounds=20, budget_s=budget_s)
    assert run.measurement is not None
    painter = MeasuredPainter(config, run, locale)
    painter._rounds = done
    told = painter._left(run.measurement, 4.0)
    assert told == (say_message(left, locale) if isinstance(left, Message) else left)


def test_a_sweep_plans_six_rounds_for_each_point(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of 20 s: of a budget of ten minutes, two points get theirs, starts included."""
    monkeypatch.setattr("playground.engine.devices.machine", lambda: CPU)
    run = measured_before(history)
    plan = SweepPlan(knobs=(Knob(name="max_num_seqs", values=(1, 2, 3)),), budget_s=600.0)
    sweep = new_sweep(plan, case_of(run, budget_s=900.0))
    assert estimate(history, sweep, "cpu").fitting == 3
    for side in run.sides:
        for trial in side.trials:
            trial.started_ms *= 10
    history.finish(run)
    told = estimate(history, sweep, "cpu")
    assert told.worth_s == pytest.approx(10 * 6 * ROUND_S)
    assert told.fitting == 2
    assert told.point_s >= told.worth_s

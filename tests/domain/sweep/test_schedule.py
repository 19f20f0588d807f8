"""From a sweep of k and concurrency to a schedule of k by the size of the batch, and its own measurement."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import sweep_run
from support.schema import check
from support.sweep_run import made_sweep, save

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.fit.path_issues import _covers
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.sweep.analysis import SweepAnalysis
from playground.domain.sweep.record import Sweep
from playground.domain.sweep.schedule import KEY, Schedule, _ranges
from playground.i18n import LOCALES, say_message
from playground.report.sweep import sweep_document
from playground.runs.sweep import new_sweep
from playground.store import History
from playground.ui.sweep.painter import SweepPainter


@pytest.fixture
def dear_in_batches(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """A draft token costs little alone and more than it brings in a batch of 16."""
    monkeypatch.setattr(sweep_run, "PER_DRAFT", 0.2)
    return made_sweep("quick.k=1,4", "concurrency=1,4,16")


@pytest.mark.parametrize(
    ("best", "ranges"),
    [
        ({1: 5, 4: 2, 16: 0}, ((1, 2, 5), (3, 8, 2), (9, 16, 0))),
        # Neighbours of one k are one range; the border between neighbouring sizes is the first.
        ({2: 3, 1: 3, 3: 1}, ((1, 2, 3), (3, 3, 1))),
        # From below the smallest size on.
        ({8: 0, 64: 4}, ((1, 22, 0), (23, 64, 4))),
    ],
)
def test_borders(best: dict[int, int], ranges: Any) -> None:
    assert _ranges(best) == ranges
    assert _covers(ranges)


def test_a_schedule_is_proposed_and_measured(dear_in_batches: Sweep, config: Config) -> None:
    analysis = SweepAnalysis.of(dear_in_batches)
    assert "k = 4 at 1-8, off at 9+." in say_message(analysis.recommendation.reason)
    schedule = analysis.recommendation.schedule
    assert schedule is not None
    ks = [k for _, _, k in schedule.ranges]
    assert ks == sorted(ks, reverse=True)
    assert ks[-1] == 0
    assert schedule.concurrencies == (1, 4, 16)

    side = analysis.recommended_side
    assert side is not None
    assert isinstance(side.settings, EngineSettings)
    fields = side.settings.speculation.model_dump()
    assert (fields[KEY], fields["num_speculative_tokens"]) == (schedule.ranges, max(ks))
    for locale in LOCALES:
        painted = SweepPainter(config, dear_in_batches, locale).paint()
        assert painted is not None
        assert KEY in painted[0]
        assert say_message(schedule.message, locale) in painted[0]
    document = json.loads(json.dumps(sweep_document(analysis)))
    check("sweep", document)
    assert document["recommended"]["schedule"] == [list(part) for part in schedule.ranges]

    plan, case = schedule.measurement(dear_in_batches)
    measured = new_sweep(plan, case)
    assert [point.values for point in measured.points] == [(1,), (4,), (16,)]
    labels = [side.label for side in measured.case.sides]
    assert labels == ["plain", f"quick, k = {schedule.single_k}", "quick, k by batch"]
    engines = [side.engine for side in measured.case.sides if isinstance(side.engine, EngineSettings)]
    assert [engine.speculation.model_dump().get(KEY) for engine in engines] == [None, None, schedule.ranges]


def test_prescribed_rates_are_as_many_as_drafts() -> None:
    """vLLM refuses a list of another length than k."""
    rates = {"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": (0.8, 0.6)}
    engine = EngineSettings(target="m", speculation=Ngram(num_speculative_tokens=2, **rates))
    fields = Schedule("B", ((1, 8, 4), (9, 64, 0)), 4, (1, 64)).engine(engine).speculation.model_dump()
    assert len(fields["synthetic_acceptance_rates"]) == fields["num_speculative_tokens"] == 4


@pytest.mark.parametrize(
    "knobs",
    [
        ("quick.k=1,4",),
        ("concurrency=1,4",),
        ("quick.k=1,2", "max_num_seqs=1,2"),
        ("quick.k=2", "concurrency=1,2"),
    ],
)
def test_none_where_nothing_depends_on_the_batch(knobs: tuple[str, ...]) -> None:
    sweep = made_sweep(*knobs)
    with pytest.raises(InvalidInput) as refused:
        SweepAnalysis.of(sweep).schedule_measurement()
    assert refused.value.message_id == "sweep.no_schedule"


def test_the_command_line_measures_it(
    dear_in_batches: Sweep, config: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save(History(config.db), dear_in_batches)
    monkeypatch.setattr(Config, "from_environment", lambda: config)
    monkeypatch.setattr("playground.runs.host.Host._device", lambda host, sweep: "cpu")
    monkeypatch.setattr("playground.runs.host.Host.sweep_run", lambda host, sweep, places: None)
    assert main(["sweep", "--schedule", dear_in_batches.id, "--plan", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["points"] == 3
    assert main(["sweep", "--schedule", "no-such"]) == 2

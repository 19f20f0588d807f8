"""A race's answers as the page gets them: what is new, and all again only where sources have changed."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from playground.config import Config
from playground.domain.record.run import Run, SideRecord, StartStage, Trial
from playground.domain.record.traces import Chunk, RequestTrace, StepArrays
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import Workload
from playground.runs.live import Live, RunProgress
from playground.ui.shared import race_painter
from playground.ui.shared.race_painter import RacePainter


class Letters:
    """A tokenizer whose tokens are letters."""

    def split(self, text: str, ids: tuple[int, ...] | None) -> list[str]:
        return [*text]


@pytest.fixture(autouse=True)
def letters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(race_painter, "token_text", lambda folder: Letters())


@pytest.fixture
def trace() -> RequestTrace:
    return RequestTrace(conversation=Workload(prompt="x").conversation)


@pytest.fixture
def painter(config: Config, trace: RequestTrace) -> RacePainter:
    side = SideRecord("ngram", EngineSettings(target="m", speculation=Ngram()), trials=[Trial(requests=[trace])])
    run = Run("r", "2026-11-30T12:00:00+00:00", "race", Workload(prompt="x"), [side])
    return RacePainter(config, run, "en", None)


def painted(painter: RacePainter, **how: bool) -> dict[str, Any]:
    side: dict[str, Any] = json.loads(painter.paint(**how))["sides"][0]
    return side


def grow(trace: RequestTrace, *texts: str) -> None:
    trace.chunks += [Chunk(10.0 * len(trace.chunks), len(text), text) for text in texts]


def test_only_what_is_new_is_coloured_and_sent(painter: RacePainter, trace: RequestTrace) -> None:
    """Also where somebody else has just got everything."""
    for number in range(40):
        grow(trace, "ab" if number else "p")
        if number % 3 == 1:
            assert painted(painter, whole=True)["reset"]
        side = painted(painter)
        assert not side["reset"]
        assert side["from"] + len(side["spans"]) == 1 + 2 * number
        assert len(side["spans"]) == (2 if number else 1)
    assert painted(painter, whole=True)["spans"] == [["p", 0], *[["a", 1], ["b", 0]] * 39]


@pytest.mark.parametrize(
    ("accepted", "reset", "spans"),
    [
        # As it was estimated: one step a chunk.
        ((3,), False, [["p", 0], ["a", 1], ["b", 1], ["c", 1], ["d", 0]]),
        # The engine merged two steps into one chunk.
        ((1, 1), True, [["p", 0], ["a", 1], ["b", 0], ["c", 1], ["d", 0]]),
    ],
)
def test_the_step_record_recolours_only_if_it_says_otherwise(
    painter: RacePainter, trace: RequestTrace, accepted: tuple[int, ...], reset: bool, spans: list[Any]
) -> None:
    grow(trace, "p", "abcd")
    side = painted(painter, whole=True)
    assert side["spans"] == [["p", 0], ["a", 1], ["b", 1], ["c", 1], ["d", 0]]
    assert side["legend"][-1] == ["estimated", side["legend"][-1][1]]
    trace.steps, trace.ended = StepArrays(accepted, accepted), True
    # Somebody who has just come does not take the news from the others.
    assert painted(painter, whole=True)["spans"] == spans
    assert painted(painter)["reset"] is reset
    assert not painted(painter)["reset"]
    side = painted(painter, whole=True)
    assert side["spans"] == spans
    assert side["legend"][-1][0] == "settled"


def test_without_a_count_nothing_more_is_coloured(painter: RacePainter, trace: RequestTrace) -> None:
    grow(trace, "p", "ab")
    trace.chunks.append(Chunk(30.0, None, "cd"))
    grow(trace, "ef")
    trace.ended = True
    assert painted(painter)["spans"] == [["p", 0], ["a", 1], ["b", 0], ["cd", 0], ["ef", 0]]


@pytest.mark.parametrize(
    ("usual_s", "expected"), [(52.0, "about 52 s here"), (None, "none has been started here before")]
)
def test_a_start_says_how_long_it_usually_takes(config: Config, usual_s: float | None, expected: str) -> None:
    run = Run("1", "2026", "race", Workload(prompt="x"), [SideRecord("A", EngineSettings(target="m"))])
    live = Live(run, [RunProgress("loading_weights")], "starting", starting_since=time.monotonic() - 34)
    live.usual_start_s = usual_s
    comparison = cast("Any", SimpleNamespace(live=live, unsaved=None))
    headline = json.loads(RacePainter(config, run, "en", comparison).paint())["headline"]
    assert "34 s" in headline
    assert expected in headline


def test_the_stages_of_a_start_with_their_seconds(config: Config) -> None:
    """While it starts those that have passed, afterwards in the run's details; what took no time is left out."""
    run = Run("1", "2026", "race", Workload(prompt="x"), [SideRecord("A", EngineSettings(target="m"))])
    progress = RunProgress("importing")
    for stage in ("configuring", "loading_weights"):
        progress.since -= 20 if progress.stage == "importing" else 0
        progress.advance(stage)
    comparison = cast("Any", SimpleNamespace(live=Live(run, [progress], "starting"), unsaved=None))
    side = json.loads(RacePainter(config, run, "en", comparison).paint())["sides"][0]
    assert side["stage"] == "loading weights · 0 s · after starting Python 20 s"
    progress.advance("ready")
    # It waits for the others.
    progress.since -= 20
    progress.advance("warming_up")
    assert "ready" not in [stage.stage for stage in progress.passed]
    run.sides[0].start = (
        StartStage("importing", 20.1),
        StartStage("configuring", 0.1),
        StartStage("serving", 2.0),
    )
    details = json.loads(RacePainter(config, run, "en", None).paint(whole=True))["asked"]
    assert ["Start of A", "ready after 22 s: starting Python 20 s, starting the server 2 s"] in details

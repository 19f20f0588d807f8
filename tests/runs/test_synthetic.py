"""Where acceptance is prescribed, figures say so and no answer is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from support.measured_run import measured_run

from playground.cli.console import print_run
from playground.config import Config
from playground.domain.record.run import Run
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.i18n import say
from playground.report.html import html_report
from playground.ui.shared import view

ANSWER = "w1 w2"


def synthetic(run: Run) -> Run:
    spoken = Ngram(rejection_sample_method="synthetic", synthetic_acceptance_length=3.0)
    run.sides[1].settings = EngineSettings(target="m", speculation=spoken)
    return run


def raced() -> Run:
    run = measured_run(1)
    return replace(run, mode="race", measurement=None)


@pytest.mark.parametrize("made", [measured_run, raced])
def test_the_panes(made: Callable[[], Run], config: Config) -> None:
    run = synthetic(made())
    plain, quick = json.loads(view.painter(config, run, "en").paint(whole=True))["sides"]
    assert ANSWER in text_of(plain)
    assert ANSWER not in json.dumps(quick)
    assert say("side.synthetic_text") in json.dumps(quick)
    assert "Synthetic" in quick["place"]
    assert "Synthetic" not in plain["place"]


def text_of(side: dict[str, Any]) -> str:
    spans, answers = side.get("spans", []), side.get("answers", {})
    pairs = answers.get("pairs", [])
    return "".join(text for text, _ in spans) + "".join(said for _, said in pairs)


def test_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    run = synthetic(raced())
    print_run(run)
    for shown in (capsys.readouterr().out, html_report(run)):
        # The other side's two answers alone.
        assert shown.count("w1 w2 w3") == 2
        assert shown.count(say("side.synthetic_text")) == 2

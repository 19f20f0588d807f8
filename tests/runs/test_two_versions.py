"""Two versions of vLLM as the two sides of a run."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest
from support.races import finished, workload
from support.waiting import until

from playground.config import Config
from playground.domain.spec.case import Side
from playground.domain.spec.difference import differences, labelled
from playground.domain.spec.settings import EngineSettings
from playground.engine import runtime
from playground.i18n import say_message
from playground.report.answer import unlike
from playground.runs.host import Host
from playground.ui.compare.cards import cards

SIDES = tuple(
    Side(label="-", engine=EngineSettings(target="model", runtime=name)) for name in ("default", "older")
)
NAMED = labelled(
    SIDES,
    ("", ""),
    [side.model_copy(update={"profile": None, "engine": EngineSettings(target="m")}) for side in SIDES],
)


@pytest.fixture
def versions(fake_runtime: None, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The version of each runtime, which a test may change."""
    known, probed = {"default": "0.32.0", "older": "0.31.0"}, runtime.probe(Config(), "default")
    monkeypatch.setenv("PLAYGROUND_RUNTIMES", f"older={sys.executable}")
    monkeypatch.setattr(runtime, "probe", lambda config, name: replace(probed, name=name, version=known[name]))
    return known


async def test_labels_and_the_answer_name_the_versions(versions: dict[str, str]) -> None:
    assert [side.label for side in NAMED] == [
        "Speculation off, runtime = default",
        "Speculation off, runtime = older",
    ]
    assert list(differences(NAMED)) == ["runtime"]
    host = Host(Config.from_environment())
    host.open()
    try:
        comparison = host.comparison(NAMED, workload())
        await host.start(comparison, "a test")
        run = (await finished(comparison)).run
        assert run.status == "done"
        assert [side.label for side in run.sides] == [
            "Speculation off, vLLM 0.32.0",
            "Speculation off, vLLM 0.31.0",
        ]
        assert "vLLM 0.32.0 | vLLM 0.31.0" in say_message(unlike(run)[0])
        # What is measured again after an update says so.
        assert run.settings == NAMED
        await until(lambda: host.pool.holder is None)
        versions["older"] = "0.31.1"
        again = host.repetition(run)
        again.check_runtimes()
        assert again.run.sides[1].label == "Speculation off, vLLM 0.31.1"
        # Two builds of one version keep the names that tell them apart.
        versions["older"] = "0.32.0"
        builds = host.comparison(NAMED, workload())
        builds.check_runtimes()
        assert [side.label for side in builds.run.sides] == [side.label for side in NAMED]
    finally:
        await host.close()


def test_the_runtime_is_a_click_away() -> None:
    assert "#side1-runtime" in cards(NAMED, NAMED, "en")

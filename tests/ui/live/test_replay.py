"""Replays: at each moment what had come by then, at the end what the run says."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from support.races import raced

from playground.domain.record.run import Run
from playground.i18n import say
from playground.report import recordings
from playground.runs.host import Host
from playground.ui.live.replay import MOST_PICTURES, pictures
from playground.ui.live.route import routes

RACE = "smollm2-ngram.race"


def text_at(traces: list[Any], ms: int) -> str:
    return "".join(chunk.text for trace in traces for chunk in trace.chunks if trace.sent_ms + chunk.ms <= ms)


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_a_race_grows_as_it_did(host: Host, locale: Any) -> None:
    run = recordings.load(RACE)
    assert isinstance(run, Run)
    *growing, (end, last) = pictures(host, run, locale, listed=False)
    assert [ms for ms, _ in growing] == sorted({ms for ms, _ in growing})
    texts = [""] * len(run.sides)
    for ms, parts in growing:
        for index, side in enumerate(json.loads(parts["panes"])["sides"]):
            texts[index] += "".join(text for text, _ in side["spans"])
            assert texts[index] == text_at(run.sides[index].requests, ms)
    assert len(growing) <= MOST_PICTURES + 1
    assert sum(len(json.dumps(parts)) for _, parts in growing) < 300_000
    panes = json.loads(last["panes"])
    assert end >= growing[-1][0]
    assert "5.05" in panes["headline"]
    for side, text in zip(panes["sides"], texts, strict=True):
        assert "".join(span for span, _ in side["spans"]).startswith(text)
    # It is not in this host's history, and nothing of the shared record has changed.
    assert run.id not in panes["note"]
    assert run.status == "done"
    assert pictures(host, run, locale, listed=True)[-1][1]["panes"].count(run.id) == 2


@pytest.mark.parametrize("name", ["smollm2-ngram.measured", "shaped-articles-setting.sweep"])
def test_what_has_no_times_opens_as_a_result(host: Host, name: str) -> None:
    [(_, parts)] = pictures(host, recordings.load(name), "en", listed=False)
    if name.endswith("measured"):
        panes = json.loads(parts["panes"])
        assert "1.66" in panes["headline"]
        assert "10 rounds of 4 prompts" in panes["headline"]
        assert panes["table"]["key"][0]["cells"] != [["-"], ["-"]]
    else:
        assert "1.72x (1.55–1.91)" in json.loads(parts["points"])["rows"][-1]["cells"]


async def replayed(host: Host, path: str, language: str = "en") -> tuple[int, Any]:
    transport = httpx.ASGITransport(Starlette(routes=routes(host)))
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:
        answer = await client.get(f"/live/replay/{path}", headers={"accept-language": language})
        return answer.status_code, answer.json()


async def test_the_route(host: Host) -> None:
    status, replay = await replayed(host, f"recording/{RACE}", "zh-CN")
    assert status == 200
    assert replay["origin"] == "录制于 NVIDIA H200，2026-11-29，vLLM 0.26.0。"
    assert replay["texts"]["again"] == say("replay.again", "zh-CN")
    for unknown in ("recording/nothing", "run/nothing"):
        status, answer = await replayed(host, unknown)
        assert status == 404
        assert answer["problem"]


@pytest.mark.usefixtures("fake_runtime")
async def test_a_race_of_this_host_is_played_too(host: Host) -> None:
    comparison = await raced(host)
    status, replay = await replayed(host, f"run/{comparison.id}")
    assert status == 200
    assert len(replay["pictures"]) > 1
    assert comparison.id in json.loads(replay["pictures"][-1][1]["panes"])["saved"]["text"]

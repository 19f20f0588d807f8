"""Sides that somebody else runs, through the whole playground: fakes for the faults, real servers for the rest."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
from support.endpoints import at, attached
from support.fake_server import FakeServer, Reply, Steady, payload, token
from support.foreign import Foreign, Kind
from support.schema import check
from support.waiting import until

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.metrics import side_figures
from playground.domain.record.run import Run
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, Knobs
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.stats.rounds import rounds_of, run_verdicts
from playground.domain.url import BaseUrl
from playground.i18n import LOCALES, say_message
from playground.report.charts import charts_of
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.report.html import html_report
from playground.report.side_summary import limitations, race_figures
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.ui.compare import side_form
from playground.ui.shared import view

pytestmark = pytest.mark.slow

KEY = "sk-0123456789abcdef"
OWN = Side(label="own", engine=EngineSettings(target="model"))
PRESET = """
gpu = false
title = {en = "t", zh-CN = "题"}
shows = {en = "s", zh-CN = "示"}
needs = {en = "n", zh-CN = "需"}
[[sides]]
label = "one"
base_url = "http://127.0.0.1:PORT"
model = "playground"
[[sides]]
label = "two"
base_url = "http://127.0.0.1:PORT/v1"
model = "playground"
[workload]
prompt = "x"
[workload.sampling]
max_tokens = 5
"""


def asked(**sampling: object) -> Workload:
    return Workload(prompt="Tell a story.", sampling=Sampling.model_validate({"max_tokens": 12, **sampling}))


async def ran(
    host: Host,
    *sides: Side,
    workload: Workload | None = None,
    measurement: Measurement | None = None,
) -> Run:
    comparison: Comparison = host.comparison(sides, workload or asked(), measurement)
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished, within_s=300)
    return comparison.run


def everything_shown(host: Host, run: Run) -> str:
    """All that a person can be shown of a run; its JSON is checked on the way."""
    shown = [json.dumps(check("compare", compare_document(run)))]
    for locale in LOCALES:
        painter = view.painter(host.config, run, locale)
        shown += [painter.paint(whole=True), html_report(run, locale)]
        shown.append(json.dumps(charts_of(run, locale)))
        shown += [
            say_message(known, locale) for side in run.sides for known in limitations(side, run.workload.sampling)
        ]
    return "\n".join(shown)


# Beside an engine of ours, and alone


async def test_beside_an_engine(host: Host) -> None:
    async with FakeServer(Steady(rate=200, per_chunk=3)) as server:
        run = await ran(host, OWN, attached("theirs", at(server)))
        paths = [head.split(" ", 2)[1] for head in server.heads]
    assert (run.status, run.problem) == ("done", None)
    own, theirs = run.sides
    assert own.contended
    assert theirs.contended
    assert theirs.placement == f"attached {at(server)}/v1"
    assert theirs.missing == ()
    assert (theirs.runtime_version, theirs.device, theirs.samples) == (None, None, [])
    assert theirs.command.startswith(f"curl --no-buffer {at(server)}/v1/chat/completions --json")
    assert theirs.requests[0].counted_tokens == 12
    # Others' requests move its counters: they are not even read.
    assert "/metrics" not in paths
    figures = side_figures(theirs)
    assert (figures.acceptance_rate, figures.mean_acceptance_length, figures.tokens_per_step) == (None,) * 3
    told = {name: text for name, text, _ in race_figures(theirs)}
    assert list(told.values()).count("-") == 3
    assert "acceptance is unknown" in everything_shown(host, run)
    assert host.history.get(run.id) == run
    assert len(host.pool.engines) == 1
    # The history finds it by the model's name there.
    assert [found.id for found in host.history.summaries(model="playground")] == [run.id]


async def test_engines_that_nobody_needs_are_stopped(host: Host) -> None:
    async with FakeServer(Steady(rate=500)) as server:
        await ran(host, OWN, attached("theirs", at(server)))
        run = await ran(host, attached("one", at(server)), attached("two", at(server)))
    assert run.status == "done"
    assert host.pool.engines == []
    assert "does not report whether it speculates" in everything_shown(host, run)


async def test_what_a_strict_endpoint_refuses_is_said(host: Host) -> None:
    async def strict(reply: Reply) -> None:
        if reply.body.keys() - {"model", "messages", "max_tokens", "temperature", "stream"}:
            await reply.whole("422 Unprocessable Entity", "{}")
            return
        await reply.begin()
        for text in ("Hel", "lo"):
            await reply.event(token(text))
        await reply.event(payload({}, finish="stop"))
        await reply.done()

    async with FakeServer(strict) as server:
        run = await ran(host, OWN, attached("strict", at(server)), workload=asked(top_k=4))
    assert run.status == "done"
    side = run.sides[1]
    known = ("token_ids", "running_usage", "usage", "cache_salt", "ignore_eos")
    assert side.missing == (*known, "top_k", "seed")
    assert "top_k" not in side.command
    assert side.requests[0].output_text == "Hello"
    assert side_figures(side).output_tokens is None
    shown = everything_shown(host, run)
    assert "it refuses them: top_k, seed" in shown
    assert "prefix cache can't be isolated" in shown
    assert host.history.get(run.id) == run


async def test_one_that_does_not_answer(host: Host) -> None:
    run = await ran(host, OWN, attached("nobody", "http://127.0.0.1:9"))
    assert run.status == "failed"
    assert run.problem is not None
    assert run.problem.message_id == "run.side_failed"
    assert "nobody" in say_message(run.problem)
    # It was asked before any engine was started.
    assert host.pool.engines == []


async def test_one_that_this_host_does_not_allow(tmp_path: Path) -> None:
    config = Config.from_environment(dict(os.environ, PLAYGROUND_ENDPOINTS="https://api.example.com"))
    with pytest.raises(InvalidInput) as caught:
        Host(config).comparison((OWN, attached("x", "http://127.0.0.1:9")), asked(), None)
    assert caught.value.message_id == "endpoint.not_allowed"


# The key


async def test_the_key_is_sent_and_kept_nowhere(
    host: Host,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An endpoint that takes the key, then refuses it and repeats it in its error."""
    ours = Steady(rate=500)

    async def fickle(reply: Reply) -> None:
        if len(server.replies) == 1:
            await ours(reply)
        else:
            error = {"error": {"message": f"Incorrect API key provided: {KEY}. Try another."}}
            await reply.whole("401 Unauthorized", json.dumps(error))

    caplog.set_level("DEBUG")
    async with FakeServer(fickle) as server:
        monkeypatch.setenv("PLAYGROUND_ENDPOINT_KEYS", f"{at(server)}={KEY}")
        host.config = Config.from_environment()
        run = await ran(host, attached("one", at(server)), attached("two", at(server)))
        # The second side is refused while it is probed, the first would have been later.
        assert run.status == "failed"
        first = len(server.replies)
        server.replies.clear()
        again = await ran(host, attached("one", at(server)), OWN)
        assert again.sides[0].requests[0].problem is not None
    assert first == 2
    assert all(f"Authorization: Bearer {KEY}" in head for head in server.heads if head.startswith("POST"))
    for seen in (run, again):
        shown = everything_shown(host, seen)
        assert "Incorrect API key provided: \\u2026" in shown
        assert KEY not in shown + repr(seen) + repr(host.config)
    assert KEY not in caplog.text
    kept = [file for file in host.config.db.parent.iterdir() if file.name.startswith(host.config.db.name)]
    assert kept
    assert all(KEY.encode() not in file.read_bytes() for file in kept)


async def test_a_preset_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    async with FakeServer(Steady(rate=500)) as server:
        file.write_text(PRESET.replace("PORT", str(server.port)), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "playground", "compare", str(file), "--json"),
            env=os.environ | {"PLAYGROUND_ENDPOINT_KEYS": f"{at(server)}={KEY}"},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err
    assert KEY in server.heads[0]
    assert KEY not in (out + err).decode()
    document = check("compare", json.loads(out))
    for side in document["sides"]:
        assert side["settings"]["base_url"] == f"{at(server)}/v1"
        assert side["figures"]["output_tokens"] == 5
        assert side["contended"]
        assert side["runtime"]["version"] is None
        assert "$OPENAI_API_KEY" in side["command"]


# The form


@pytest.mark.parametrize(
    "side",
    [
        attached("theirs", "https://api.example.com/v1", "m"),
        Side(label="own", engine=EngineSettings(target="t", knobs=Knobs(max_num_seqs=4))),
    ],
    ids=["attached", "own"],
)
def test_the_form_gives_back_what_it_shows(config: Config, unserved: None, side: Side) -> None:
    with gr.Blocks():
        made = side_form.build(config, 0, OWN, True)
    shown = side_form.updates(made, side)
    assert set(shown) <= set(made.outputs())
    theirs = isinstance(side.engine, AttachedEndpoint)
    assert (shown[made.endpoint]["visible"], shown[made.engine]["visible"]) == (theirs, not theirs)
    given = {part: value.get("value") if isinstance(value, dict) else value for part, value in shown.items()}
    assert side_form.read(made, {part: given.get(part) for part in made.fields.values()}) == (
        side.model_copy(update={"label": "A"}),
        [],
    )


def test_the_form_says_what_is_no_address(config: Config, unserved: None) -> None:
    with gr.Blocks():
        made = side_form.build(config, 0, OWN, True)
    fields = made.fields
    given = dict.fromkeys(fields.values(), "x") | {
        fields["base_url"]: "http://me:sk-s@host",
        fields["api"]: "chat",
    }
    with pytest.raises(InvalidInput) as caught:
        side_form.read(made, given)
    assert "sk-s" not in say_message(caught.value)


# Real servers


@pytest.fixture(scope="module")
def pair(foreign_server: Callable[[Kind], Foreign]) -> tuple[Foreign, Foreign]:
    return foreign_server("llama.cpp"), foreign_server("transformers")


def real_sides(pair: tuple[Foreign, Foreign]) -> list[Side]:
    return [attached(server.kind, server.url, server.model) for server in pair]


@pytest.mark.foreign
async def test_race_of_two_that_are_no_vllm(
    host: Host,
    pair: tuple[Foreign, Foreign],
) -> None:
    run = await ran(host, *real_sides(pair))
    assert (run.status, run.problem) == ("done", None)
    llama, transformers = run.sides
    assert "cache_salt" in llama.missing
    assert "ignore_eos" not in llama.missing
    assert {"token_ids", "running_usage", "ignore_eos"} <= set(transformers.missing)
    for side in run.sides:
        [trace] = side.requests
        assert trace.problem is None
        assert trace.output_text
        assert trace.counted_tokens == trace.output_tokens == 12
        assert side.contended
        figures = side_figures(side)
        assert figures.approximate
        assert figures.tpot_ms is not None
        assert (figures.itl_ms, figures.acceptance_rate, figures.tokens_per_step) == (None, None, None)
    assert host.history.get(run.id) == run
    everything_shown(host, run)


@pytest.mark.foreign
async def test_measured_comparison_of_two_that_are_no_vllm(
    host: Host,
    pair: tuple[Foreign, Foreign],
) -> None:
    plan = Measurement(profile=ConcurrencyProfile(requests=2), max_rounds=6, target_width=0.005)
    run = await ran(host, *real_sides(pair), workload=asked(max_tokens=6), measurement=plan)
    assert (run.status, run.problem) == ("done", None)
    for side in run.sides:
        assert len(side.trials) == 6
        assert all(trial.complete and len(trial.requests) == 2 for trial in side.trials)
        assert all(trace.counted_tokens == 6 for trace in side.requests)
        assert not side.contended
    [verdict] = run_verdicts(run, rounds_of(run))
    assert verdict.rounds == 6
    assert verdict.interval is not None
    for locale, rounds in (("en", "6 rounds of 2 prompts"), ("zh-CN", "6 轮")):
        first = say_message(conclusions(run)[0].sentence, locale)
        assert rounds in first
        assert all(side.label in first for side in run.sides)
    assert host.history.get(run.id) == run
    everything_shown(host, run)


async def test_a_page_for_others_attaches_nothing_unless_told(host: Host) -> None:
    """Otherwise whoever reaches it could have this machine send requests anywhere."""
    host.config = replace(host.config, host="0.0.0.0")
    with pytest.raises(InvalidInput) as caught:
        host.comparison((OWN, attached("theirs", "http://127.0.0.1:1")), asked())
    assert caught.value.message_id == "endpoint.none_allowed"
    host.config = replace(host.config, endpoints=(BaseUrl.parse("http://127.0.0.1:1"),))
    host.comparison((OWN, attached("theirs", "http://127.0.0.1:1")), asked())


class Hosted:
    """Answers as a hosted API's documentation says: reasoning before the answer, usage at the end, and 429 with
    Retry-After for each second request."""

    def __init__(self, retry_after: str = "0.1") -> None:
        self._head = f"HTTP/1.1 429 Too Many Requests\r\nretry-after: {retry_after}\r\n"
        self.refused = self._count = 0

    async def __call__(self, reply: Reply) -> None:
        self._count += 1
        if self._count % 2 == 0:
            self.refused += 1
            body = '{"error": {"message": "Rate limit reached", "type": "rate_limit_error"}}'
            await reply.raw(f"{self._head}content-length: {len(body)}\r\n\r\n{body}".encode())
            return
        await reply.begin()
        await reply.event(payload({"role": "assistant", "content": None, "reasoning_content": ""}))
        await reply.event(payload({"content": None, "reasoning_content": "Well,"}))
        await reply.event(payload({"content": " yes.", "reasoning_content": None}))
        await reply.event(payload({"content": ""}, finish="stop", completion_tokens=2))
        await reply.done()


async def test_a_hosted_api_with_a_rate_limit_and_prices(host: Host) -> None:
    hosted = Hosted()
    plan = Measurement(profile=ConcurrencyProfile(concurrency=2, requests=4), max_rounds=6, check_outputs=False)
    async with FakeServer(hosted) as server:
        host.config = replace(host.config, token_prices={BaseUrl.parse(at(server)): (0.5, 2.0)})
        run = await ran(host, attached("one", at(server)), attached("two", at(server)), measurement=plan)
    assert (run.status, run.problem) == ("done", None)
    for side in run.sides:
        assert [trace.problem for trace in side.requests] == [None] * len(side.requests)
        assert {trace.output_text for trace in side.requests} == {"Well, yes."}
        assert sum(trial.limited for trial in side.trials) > 0
        figures = side_figures(side, plan)
        # Seven tokens of a prompt for two of an answer.
        assert figures.cost_per_million_output_tokens == pytest.approx(0.5 * 7 / 2 + 2.0)
        assert max(trace.chunks[0].ms for trace in side.requests) < 100, "it counts from the last send"
    assert hosted.refused
    assert host.history.get(run.id) == run
    assert "rate limit" in everything_shown(host, run)


async def test_a_rate_limit_that_asks_for_too_long_is_an_error(host: Host) -> None:
    host.config = replace(host.config, request_timeout_s=1)
    plan = Measurement(profile=ConcurrencyProfile(requests=2), max_rounds=6, check_outputs=False)
    async with FakeServer(Hosted("3600")) as server:
        endpoint = host.comparison((attached("one", at(server)), OWN), asked(), plan)
        await host.start(endpoint, "a test")
        await until(lambda: endpoint.finished, within_s=60)
    assert endpoint.run.status == "failed"
    assert "Rate limit reached" in everything_shown(host, endpoint.run)

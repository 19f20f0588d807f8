"""A whole race without vLLM: the fake server stands in for the engine, everything else is the real thing."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace

import httpx
import pytest
from support.races import SIDES, finished, raced, streaming, workload
from support.waiting import until

from playground.config import Config
from playground.domain.errors import HostBusy, InvalidInput
from playground.domain.record.metrics import side_figures
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.engine.server import Engine
from playground.i18n import say_message
from playground.runs import race
from playground.runs.host import Host
from playground.runs.sides import engine_start
from playground.ui.shared.race_painter import RacePainter

pytestmark = pytest.mark.slow


async def test_race(host: Host) -> None:
    comparison = await raced(host)
    run = comparison.run
    assert comparison.run.problem is None
    assert run.status == "done"
    for side in run.sides:
        [trace] = side.requests
        assert trace.counted_tokens == 20
        assert side.contended
        assert (side.runtime_version, side.device) == ("0.32.0", "cpu")
        assert "fake_server" in side.command
        # Counters of an engine at rest, and only of this request: the warm-up came before.
        [trial] = side.trials
        assert trial.complete
        assert trial.before is not None
        assert trial.after is not None
        assert trial.after.generation_tokens is not None
        assert trial.before.generation_tokens is not None
        assert trial.after.generation_tokens - trial.before.generation_tokens == 20
        assert side_figures(side).ttft_ms is not None
    # What the history tells is what was seen.
    assert host.history.get(run.id) == run
    # The engines stay for the next race.
    assert all(engine.alive for engine in host.pool.engines)


async def test_engines_are_reused(host: Host) -> None:
    await raced(host)
    before = list(host.pool.engines)
    assert len(before) == 2
    await raced(host)
    assert all(engine in before for engine in host.pool.engines)
    # Changing B leaves A running.
    other = Side(label="k", engine=EngineSettings(target="model", speculation=Ngram(num_speculative_tokens=3)))
    await raced(host, sides=(SIDES[0], other))
    assert [engine in before for engine in host.pool.engines].count(True) == 1
    assert len(host.pool.engines) == 2


async def test_equal_sides_are_two_engines(host: Host) -> None:
    comparison = await raced(host, sides=(SIDES[0], Side(label="again", engine=SIDES[0].engine)))
    assert comparison.run.status == "done"
    assert len(host.pool.engines) == 2


async def test_stop_in_the_middle(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(100_000))
    await host.start(comparison, "a test")
    await streaming(comparison)
    comparison.stop()
    await finished(comparison)
    assert comparison.run.status == "stopped"
    assert comparison.run.problem is None
    for side in comparison.run.sides:
        [trace] = side.requests
        assert trace.problem is not None
        assert trace.problem.message_id == "stream.stopped"
    assert any(side.requests[0].chunks for side in comparison.run.sides)
    assert host.history.get(comparison.run.id) == comparison.run


async def test_stop_while_starting(host: Host) -> None:
    comparison = host.comparison(SIDES, workload())
    await host.start(comparison, "a test")
    comparison.stop()
    await finished(comparison)
    assert comparison.run.status == "stopped"
    assert comparison.run.problem is None
    await until(lambda: host.pool.holder is None)
    found = host.history.get(comparison.run.id)
    assert found is not None
    assert found.status == "stopped"
    # The host is free again.
    assert (await raced(host)).run.status == "done"


def _serves(engine: Engine) -> bool:
    """Whether a request is under way in it."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(engine.uds))) as client:
        samples = client.get("http://engine/metrics").text.splitlines()
    return any(line.startswith("vllm:num_requests_running{") and line.endswith(" 1.0") for line in samples)


async def test_stop_in_the_first_request(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """The warm-up is no part of the race, and has to end as well."""
    monkeypatch.setattr(race, "WARM_UP_TOKENS", 100_000)
    comparison = host.comparison(SIDES, workload())
    await host.start(comparison, "a test")
    await until(lambda: {progress.stage for progress in comparison.live.progress} == {"first_request"})
    # Its requests are under way, not only being prepared.
    await until(lambda: all(_serves(engine) for engine in host.pool.engines))
    comparison.stop()
    await finished(comparison)
    assert comparison.run.status == "stopped"
    assert not any(side.requests for side in comparison.run.sides)


async def test_every_side_without_its_model_is_told(host: Host) -> None:
    """Nothing starts, and a side whose model is there says why it was not measured."""
    absent = EngineSettings(target="/nowhere/model")
    sides = [SIDES[0], *(Side(label=label, engine=absent) for label in ("first", "second"))]
    comparison = host.comparison(sides, workload())
    await host.start(comparison, "a test")
    await finished(comparison)
    run = comparison.run
    assert [side.problem and side.problem.message_id for side in run.sides] == [
        None,
        *2 * ["model.no_such_folder"],
    ]
    assert not host.pool.engines
    panes = json.loads(RacePainter(host.config, run, "en").paint(whole=True))
    assert panes["note"] == "Did not start: first, second. The reason is below."
    assert panes["sides"][0]["stage"] == "not measured, because this did not start: first, second"
    assert [pane["stage"] for pane in panes["sides"][1:]] == ["", ""]
    assert all(pane["idle"] for pane in panes["sides"])


async def test_side_that_does_not_start(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    real = engine_start.command.build

    def built(settings: EngineSettings, *arguments: object, **more: object) -> object:
        made = real(settings, *arguments, **more)  # type: ignore[arg-type]
        code = "import sys; sys.exit('ValueError: No available memory for the cache blocks.')"
        return replace(made, argv=(sys.executable, "-c", code)) if settings.speculates else made

    monkeypatch.setattr(engine_start.command, "build", built)
    comparison = await raced(host)
    assert comparison.run.status == "failed"
    assert comparison.run.problem is not None
    assert "ngram" in say_message(comparison.run.problem)
    a, b = comparison.run.sides
    assert a.problem is None
    assert b.problem is not None
    assert b.problem.message_id == "failure.no_kv_memory"
    assert b.log_tail == ["ValueError: No available memory for the cache blocks."]
    # The other engine stays if it was ready by then.
    stages = [progress.stage for progress in comparison.live.progress]
    assert stages in (["given_up", "failed"], ["ready", "failed"])
    assert host.history.get(comparison.run.id) == comparison.run
    assert len(host.pool.engines) == stages.count("ready")


async def test_engine_that_dies_while_streaming(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(100_000))
    await host.start(comparison, "a test")
    await streaming(comparison)
    victim = host.pool.engines[1]
    assert victim._process is not None
    victim._process.process.terminate()
    index = next(i for i, side in enumerate(comparison.run.sides) if str(victim.uds) in side.command)
    await until(lambda: comparison.run.sides[index].requests[0].ended)
    # The other side goes on.
    assert not comparison.run.sides[1 - index].requests[0].ended
    comparison.stop()
    await finished(comparison)
    dead = comparison.run.sides[index]
    assert dead.requests[0].problem is not None
    assert dead.requests[0].problem.message_id == "stream.cut"
    assert dead.requests[0].chunks
    assert dead.problem is not None
    assert dead.problem.message_id.startswith("failure.")


async def test_second_run_is_refused_or_waits(host: Host) -> None:
    first = host.comparison(SIDES, workload(100_000))
    await host.start(first, "anna's page")
    second, third = (host.comparison(SIDES, workload()) for _ in range(2))
    with pytest.raises(HostBusy) as caught:
        await host.start(second, "ben's page")
    assert "anna's page" in say_message(caught.value)
    # A run that was refused never was: the history does not know it.
    assert host.history.get(second.run.id) is None
    await host.start(third, "ben's page", wait=True)
    assert host.followed(third.run.id) is third
    assert third.live.phase == "waiting"
    await streaming(first)
    first.stop()
    await finished(third)
    assert (first.run.status, third.run.status) == ("stopped", "done")


async def test_stop_while_waiting_in_line(host: Host) -> None:
    first = host.comparison(SIDES, workload(100_000))
    await host.start(first, "anna's page")
    waiting = host.comparison(SIDES, workload())
    await host.start(waiting, "ben's page", wait=True)
    await asyncio.sleep(0)
    waiting.stop()
    await finished(waiting)
    assert waiting.run.status == "stopped"
    await streaming(first)
    first.stop()
    await finished(first)


async def test_close_stops_everything(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(100_000))
    await host.start(comparison, "a test")
    await streaming(comparison)
    engines = host.pool.engines
    await host.close()
    assert not any(engine.alive for engine in engines)
    found = host.history.get(comparison.run.id)
    assert found is not None
    assert found.status == "stopped"


async def test_runs_of_a_killed_process_are_marked(config: Config, fake_runtime: None) -> None:
    host = Host(config)
    comparison = host.comparison(SIDES, workload())
    host.history.begin(comparison.run)
    (config.state / "1-left.sock").touch()
    host.tidy_up()
    [summary] = host.history.summaries()
    assert summary.status == "interrupted"
    assert not (config.state / "1-left.sock").exists()
    await host.close()


@pytest.mark.parametrize(
    ("changed", "message_id"),
    [
        ({"extra_flags": ("--x",)}, "settings.extra_flags_off"),
        ({"trust_remote_code": True}, "settings.remote_code_off"),
        ({"runtime": "other"}, "runtime.unknown"),
        ({"target": "forbidden"}, "model.not_allowed"),
    ],
)
async def test_what_the_host_does_not_allow(host: Host, changed: dict[str, object], message_id: str) -> None:
    host.config = replace(host.config, allowed_models=("model",))
    side = Side(label="B", engine=SIDES[0].engine.model_copy(update=changed))
    with pytest.raises(InvalidInput) as caught:
        host.comparison((SIDES[0], side), workload())
    assert caught.value.message_id == message_id
    assert host.history.summaries() == []

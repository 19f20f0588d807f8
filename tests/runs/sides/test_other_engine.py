"""An engine that is not vLLM as a side: a stand-in by the host's own command, and the faults of its start."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import replace

import psutil
import pytest
import pytest_asyncio
from support.races import raced, workload
from support.waiting import until

from playground.config import Config
from playground.domain.record.metrics import side_figures
from playground.domain.spec.case import Side
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings
from playground.report.deploy import snippets
from playground.runs.host import Host
from playground.runs.sides import other_engine, preflight

pytestmark = pytest.mark.slow

COMMANDS = {
    "mine": "-m support.fake_server --model={model} --port={port} --rate=500",
    "crashing": "-c \"import sys; sys.exit('ValueError: no {model} on {port}')\"",
}
PLAN = Measurement(
    profile=ConcurrencyProfile(requests=2),
    max_rounds=6,
    target_width=0.005,
    budget_s=60,
    check_outputs=False,
    check_accuracy=False,
)
VLLM = Side(label="vllm", engine=EngineSettings(target="model"))


def side(name: str, **more: object) -> Side:
    settings = {"runtime": name, "target": "model", **more}
    return Side(label=name, engine=EngineSettings.model_validate(settings))


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, engines={name: f"{sys.executable} {words}" for name, words in COMMANDS.items()})


@pytest_asyncio.fixture
async def nothing_left() -> AsyncIterator[None]:
    """Afterwards nothing may run that the test's host started."""
    before = {*psutil.Process().children(recursive=True)}
    yield
    await until(lambda: {*psutil.Process().children(recursive=True)} <= before)


async def test_measured_against_vllm(host: Host) -> None:
    comparison = host.comparison((VLLM, side("mine")), workload(), PLAN)
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished, within_s=60)
    run = comparison.run
    assert (run.status, run.problem) == ("done", None)
    mine = run.sides[1]
    assert (mine.runtime_version, mine.engine, mine.path) == (None, None, None)
    assert [stage.stage for stage in mine.start] == ["serving"]
    assert f"--model={host.config.models / 'model'} --port=" in mine.command
    assert all(trace.counted_tokens == 20 for trace in mine.requests)
    assert side_figures(mine).acceptance_rate is None
    assert host.history.get(run.id) == run
    text = snippets(host.config, mine.settings, None, "cpu")["serve"]
    assert "--port=8000" in text
    [first] = [engine for engine in host.pool.engines if engine.command.kind]
    again = await raced(host, sides=(VLLM, side("mine")))
    # The same engine: also what is said of its command, whose port a new one would not have.
    assert again.run.sides[1].command == mine.command == str(first.command)


async def test_a_crash_at_its_start(host: Host, nothing_left: None) -> None:
    run = (await raced(host, sides=(VLLM, side("crashing")))).run
    assert run.status == "failed"
    problem = run.sides[1].problem
    assert problem is not None
    assert "ValueError: no " in str(problem.params)
    await host.close()


async def test_its_port_is_taken(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(other_engine, "_free_port", lambda: other.getsockname()[1])
        run = (await raced(host, sides=(VLLM, side("mine")))).run
    assert run.status == "failed"
    assert run.sides[1].problem is not None
    assert "address already in use" in "\n".join(run.sides[1].log_tail)


async def test_what_is_said_before_a_start(host: Host) -> None:
    sides = (side("mine"), side("llama-cpp", target="model"), side("transformers", target="nothing"))
    run = host.comparison(sides, workload()).run
    mine, llama, transformers = preflight.examine(host.config, run)
    assert [issue.problem.message_id for issue in mine.issues] == ["preflight.other_engine"]
    assert (mine.fits, mine.need) == (None, None)
    # A folder without a GGUF file, and no folder at all.
    assert [issue.problem.message_id for issue in llama.issues] == ["model.no_gguf"]
    assert [issue.problem.message_id for issue in transformers.issues] == ["model.unknown"]
    assert transformers.fits is False

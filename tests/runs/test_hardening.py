"""What a careless or hostile user once broke."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.races import SIDES, raced, streaming, workload
from support.waiting import until

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import Chunk, RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import Ngram
from playground.domain.spec.workload import ChatMessage, Sampling, Workload
from playground.domain.validation import validate
from playground.models import folders
from playground.report.charts import charts_of
from playground.runs.host import Host
from playground.store import History


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_numbers_that_json_cannot_hold(value: float) -> None:
    """Stored as null, one such number made the whole history unreadable."""
    fields = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": value}
    with pytest.raises(InvalidInput, match="synthetic_acceptance_length"):
        validate(Ngram, fields, where="A")


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1, 10**30])
def test_a_seed_that_the_history_cannot_hold(seed: int) -> None:
    with pytest.raises(InvalidInput, match="seed"):
        validate(Sampling, {"seed": seed}, where="prompt")


@pytest.mark.parametrize("name", ["", "a/\0b", "x" * 5000])
def test_names_that_are_no_models(name: str) -> None:
    with pytest.raises(InvalidInput, match="target"):
        validate(EngineSettings, {"target": name}, where="A")


def test_the_home_of_nobody(config: Config) -> None:
    assert folders.local_folder(config, "~nosuchuser/x") is None


def test_a_blank_prompt_is_said_plainly() -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(Workload, {"prompt": "  "}, where="prompt")
    assert caught.value.message_id == "settings.invalid"
    assert caught.value.params["detail"] == Message("accepted.prompt")


@pytest.mark.parametrize(
    ("kind", "message_id"),
    [
        ("folder", "private.no_file"),
        ("not a database", "history.unusable"),
        ("below a file", "private.unusable"),
    ],
)
def test_a_history_that_cannot_be_used(kind: str, message_id: str, tmp_path: Path) -> None:
    path = tmp_path / "there"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInput) as caught:
        History(path / "h.db" if kind == "below a file" else path).open()
    assert caught.value.message_id == message_id


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "0"),
        ("PORT", "99999"),
        ("CPU_KV_GIB", "-3"),
        ("IDLE_STOP_S", "0"),
        ("IDLE_STOP_S", "nan"),
        ("REQUEST_TIMEOUT_S", "-1"),
    ],
)
def test_values_out_of_range(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        Config.from_environment({f"PLAYGROUND_{name}": value})


def test_a_label_is_no_markup_in_a_chart() -> None:
    trace = RequestTrace((ChatMessage(role="user", content="x"),), chunks=[Chunk(1, 1, "a"), Chunk(2, 1, "b")])
    side = SideRecord(
        "<a href='https://e.example'>x</a>", EngineSettings(target="m"), trials=[Trial(requests=[trace])]
    )
    run = Run("r", "2026-01-01", "race", Workload(prompt="x"), [side])
    assert "<a" not in str([figure["data"] for figure in charts_of(run, "en").values()])


async def test_closing_keeps_what_arrived(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(2000))
    await host.start(comparison, "a test")
    await streaming(comparison)
    await host.close()
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.status == "stopped"
    assert all(side.requests[0].chunks for side in stored.sides)


async def test_a_race_waits_until_stopped_engines_are_gone(host: Host) -> None:
    await raced(host)
    before = list(host.pool.engines)
    stopping = asyncio.create_task(host.pool.stop_all())
    await asyncio.sleep(0)
    comparison = await raced(host)
    await stopping
    assert comparison.run.status == "done"
    assert not any(engine.alive for engine in before)
    assert all(engine.alive and engine.uds.exists() for engine in host.pool.engines)


async def test_stop_again_and_again(host: Host) -> None:
    comparison = host.comparison(SIDES, workload(2000))
    await host.start(comparison, "a test")
    while not comparison.finished:
        comparison.stop()
        await asyncio.sleep(0.01)
    await until(lambda: host.pool.holder is None)
    assert comparison.run.status == "stopped"
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.status == "stopped"

"""The check before a start, as a whole: what fits where, what is refused, what is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from support.paths import CHILD_PATH
from support.schema import check
from support.shapes import CONFIGS
from support.waiting import until

from playground.cli.main import main
from playground.config import Config
from playground.domain.fit.memory import GIB
from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Sampling, Workload
from playground.engine.devices import Gpu, Machine
from playground.engine.failures.remedies import remedy_of
from playground.engine.runtime import Runtime
from playground.i18n import LOCALES, say_message
from playground.presets import Side
from playground.report import preflight as preflight_report
from playground.report.documents.preflight import preflight_document
from playground.runs.host import Host
from playground.runs.sides import kv_room, preflight
from playground.runs.sides.cards import place
from playground.runs.sides.placement import PlannedEngine
from playground.runs.sides.preflight import SideCheck
from playground.ui.compare import preflight_panel

H200 = Gpu(0, "NVIDIA H200", 150_109_880_320, 149_000_000_000)
WORDS = {"a": 0, "b": 1}
FLAGS = frozenset({"--dtype", "--max-model-len", "--speculative-config", kv_room.FLAG})


def machine(*gpus: Gpu, native_bf16: bool = False) -> Machine:
    return Machine("a processor", (0, 1), native_bf16, 64 * GIB, gpus)


def runtime(device: str = "cuda") -> Runtime:
    return Runtime(
        "default",
        Path(sys.executable),
        "0.32.0",
        device,
        "support.fake_server",
        None,
        FLAGS,
        True,
    )


def model_at(config: Config, name: str, shape: str, words: dict[str, int] | None = None, **changed: Any) -> None:
    folder = config.models / name
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({**CONFIGS[shape], **changed}))
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": words or WORDS, "merges": []}}))


@pytest.fixture(autouse=True)
def some_models(config: Config) -> None:
    model_at(config, "big", "7b")
    model_at(config, "small", "0.5b")
    model_at(config, "long", "0.5b", max_position_embeddings=131_072)
    model_at(config, "stranger", "0.5b", {"b": 0, "a": 1})
    model_at(config, "huge", "llama-70b")


def engines(*settings: dict[str, Any], host: Machine, device: str = "cuda") -> list[PlannedEngine]:
    made = [EngineSettings.model_validate(each) for each in settings]
    places = place(made, [device] * len(made), host)
    return [
        PlannedEngine(f"side {i}", each, runtime(device), at)
        for i, (each, at) in enumerate(zip(made, places, strict=True))
    ]


def assessed(config: Config, *settings: dict[str, Any], host: Machine, device: str = "cuda") -> list[SideCheck]:
    return preflight.assess(config, engines(*settings, host=host, device=device), host, Sampling())


def draft(model: str) -> dict[str, Any]:
    return {"method": "draft_model", "model": model, "num_speculative_tokens": 5}


def test_two_sides_on_one_card_share_it(config: Config) -> None:
    """Each has 45% of it, as its engine will be told."""
    checks = assessed(
        config, {"target": "big"}, {"target": "big", "speculation": draft("small")}, host=machine(H200)
    )
    assert [check.fits for check in checks] == [True, True]
    assert [check.pair and check.pair.verdict for check in checks] == [None, "works"]
    needs = [check.need for check in checks]
    assert all(need is not None and need.budget == int(0.45 * H200.total_bytes) for need in needs)


def rooms(config: Config, *settings: dict[str, Any], cards: int = 1) -> list[int | None]:
    host = machine(*(Gpu(number, "NVIDIA H200", H200.total_bytes, H200.free_bytes) for number in range(cards)))
    planned = engines(*settings, host=host)
    return kv_room.equal(planned, preflight.assess(config, planned, host, Sampling()))


def test_equal_room_on_a_shared_card(config: Config) -> None:
    """The same for a side with a draft as for one without; somewhat less than what vLLM would find, never more."""
    off, drafted = {"target": "big"}, {"target": "big", "speculation": draft("small")}
    checks = assessed(config, off, off, drafted, host=machine(H200))
    least = min(check.need.kv_available for check in checks if check.need is not None)
    first, *others = rooms(config, off, off, drafted)
    assert first is not None
    assert others == [first, first]
    assert 0.85 * least < first <= least
    # A small change of one side leaves the engines of the others.
    assert rooms(config, off, {"target": "big", "knobs": {"max_num_seqs": 256}}, drafted) == [first] * 3


@pytest.mark.parametrize(
    ("second", "cards", "known"),
    [
        ({"target": "big"}, 1, [True, True]),
        # Each has its card alone.
        ({"target": "big"}, 2, [False, False]),
        # The user said how much; vLLM then measures what is left of it.
        ({"target": "big", "knobs": {"gpu_memory_utilization": 0.4}}, 1, [False, False]),
        ({"target": "big", "knobs": {"kv_cache_memory_bytes": 2**30}}, 1, [True, False]),
        ({"target": "big", "extra_flags": ["--x"]}, 1, [False, False]),
        ({"target": "owner/absent"}, 1, [False, False]),
        # No room for a sequence.
        ({"target": "huge"}, 1, [False, False]),
        # The second side takes a card of the first and one of its own.
        ({"target": "big", "knobs": {"tensor_parallel_size": 2}}, 2, [True, True]),
    ],
)
def test_who_gets_room_by_its_estimate(
    config: Config, second: dict[str, Any], cards: int, known: list[bool]
) -> None:
    assert [size is not None for size in rooms(config, {"target": "big"}, second, cards=cards)] == known


def test_two_sides_that_each_want_most_of_one_card(config: Config) -> None:
    most = {"target": "big", "knobs": {"gpu_memory_utilization": 0.9}}
    first, second = assessed(config, most, most, host=machine(H200))
    assert (first.fits, first.hopeless) == (True, None)
    assert (second.fits, second.hopeless and second.hopeless.message_id) == (False, "preflight.together")
    other = Gpu(1, "NVIDIA H200", H200.total_bytes, H200.free_bytes)
    assert all(check.fits for check in assessed(config, most, most, host=machine(H200, other)))


def test_sides_on_a_processor_share_its_memory(config: Config) -> None:
    """In float32, where the processor has no bfloat16: 28 GiB of weights each, of 64."""
    checks = assessed(config, *({"target": "big"},) * 3, host=machine(), device="cpu")
    assert [check.fits for check in checks] == [False, False, False]
    short = {"target": "big", "knobs": {"max_model_len": 2048}}
    checks = assessed(config, short, short, short, host=machine(), device="cpu")
    assert [check.fits for check in checks] == [True, False, False]
    assert all(check.hopeless is None for check in checks)


def test_what_is_not_there_is_unknown(config: Config) -> None:
    absent, other = assessed(
        config,
        {"target": "owner/absent"},
        {"target": "big", "speculation": draft("owner/absent")},
        host=machine(H200),
    )
    assert (absent.fits, absent.hopeless, absent.need) == (None, None, None)
    assert (other.fits, other.hopeless) == (None, None)
    assert other.pair is not None
    assert other.pair.verdict is None


ROWS: list[tuple[dict[str, Any], str | None]] = [
    ({"target": "big"}, None),
    ({"target": "big", "speculation": draft("small")}, None),
    ({"target": "big", "speculation": draft("stranger")}, "preflight.other_vocabulary"),
    ({"target": "huge", "knobs": {"gpu_memory_utilization": 0.96}}, "preflight.no_sequence"),
    ({"target": "huge", "knobs": {"gpu_memory_utilization": 0.5}}, "preflight.weights_too_big"),
    ({"target": "huge", "knobs": {"gpu_memory_utilization": 0.99, "max_model_len": 256}}, None),
    ({"target": "/nowhere/model"}, "model.no_such_folder"),
    ({"target": "big", "speculation": draft("nobody-has-it")}, "model.unknown"),
    # The hub may have it.
    ({"target": "owner/name"}, None),
]


@pytest.mark.parametrize(("settings", "message_id"), ROWS)
def test_what_is_hopeless(config: Config, settings: dict[str, Any], message_id: str | None) -> None:
    (found,) = assessed(config, settings, host=machine(H200))
    assert (found.hopeless.message_id if found.hopeless else None) == message_id


def test_a_model_is_split_only_where_its_heads_can_be(config: Config) -> None:
    """Of 28 heads each of eight GPUs would have three and a half."""
    cards = [Gpu(index, "a card", 8 * GIB, 8 * GIB) for index in range(8)]
    (found,) = assessed(config, {"target": "big", "knobs": {"max_model_len": 1024}}, host=machine(*cards))
    ways = [change for issue in found.issues for remedy in issue.remedies for change in remedy]
    assert Change("knobs.tensor_parallel_size", 4) in ways
    assert Change("knobs.tensor_parallel_size", 8) not in ways


def all_kinds(config: Config) -> list[SideCheck]:
    """One of each: fits, does not fit, will not work, unknown."""
    gpus = [Gpu(index, "a card", H200.total_bytes, H200.free_bytes) for index in range(4)]
    sides = ({"target": "big"}, {"target": "huge"}, {"target": "big", "speculation": draft("stranger")})
    return assessed(config, *sides, {"target": "owner/absent"}, host=machine(*gpus))


def test_the_document_is_what_the_schema_says(config: Config) -> None:
    document = check("preflight", preflight_document(all_kinds(config)))
    fits, huge, stranger, absent = document["sides"]
    assert [side["fits"] for side in document["sides"]] == [True, False, True, None]
    assert fits["needed_bytes"]["total"] <= fits["available_bytes"]
    assert fits["kv_cache"]["sequences"] > 10
    assert fits["pair"]["verdict"] is None
    assert huge["problems"][0]["certain"]
    assert {"key": "knobs.quantization", "value": "fp8"} in [
        one for way in huge["problems"][0]["changes"] for one in way
    ]
    assert (stranger["pair"]["verdict"], stranger["pair"]["equal_ids"]) == ("will not work", 0)
    assert absent["needed_bytes"] is None


@pytest.mark.parametrize("locale", LOCALES)
def test_the_page_shows_every_side(config: Config, locale: Any) -> None:
    shown = preflight_panel.cards(all_kinds(config), locale)
    assert shown.count("<section>") == 4
    assert shown.count('class="memory"') == 3
    assert "<script" not in shown
    told = [line for check in all_kinds(config) for line in preflight_report.reasons(check, locale)]
    assert told
    assert all("{" not in line for line in told)


def test_a_label_is_no_markup(config: Config) -> None:
    host = machine(H200)
    (engine,) = engines({"target": "big"}, host=host)
    odd = PlannedEngine("<b>x</b>", engine.settings, engine.runtime, engine.placement)
    assert "<b>x</b>" not in preflight_panel.cards(preflight.assess(config, [odd], host, Sampling()), "en")


def on_cpu(monkeypatch: pytest.MonkeyPatch, native_bf16: bool = True) -> None:
    """`python -m support.fake_server` takes and ignores an engine's own arguments. The processor is not this
    machine's: with or without bfloat16 of its own."""
    monkeypatch.setattr("playground.engine.devices.machine", lambda: machine(native_bf16=native_bf16))
    monkeypatch.setattr("playground.engine.runtime.probe", lambda config, name: runtime("cpu"))
    monkeypatch.setenv("PYTHONPATH", CHILD_PATH)


PRESET = """
gpu = false
[title]
en = "t"
zh-CN = "t"
[shows]
en = "s"
zh-CN = "s"
[needs]
en = "n"
zh-CN = "n"
[common]
target = "small"
[common.knobs]
max_model_len = 2048
[[sides]]
label = "off"
[[sides]]
label = "draft"
[sides.speculation]
method = "draft_model"
model = "stranger"
[[sides]]
label = "elsewhere"
base_url = "http://127.0.0.1:9"
model = "m"
[workload]
prompt = "p"
"""


def test_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_cpu(monkeypatch)
    preset = tmp_path / "mine.toml"
    preset.write_text(PRESET, encoding="utf-8")
    assert main(["preflight", str(preset), "--json"]) == 0
    off, other, elsewhere = check("preflight", json.loads(capsys.readouterr().out))["sides"]
    assert (off["fits"], other["pair"]["verdict"]) == (True, "will not work")
    assert (elsewhere["fits"], elsewhere["pair"], elsewhere["device"]) == (None, None, None)
    assert main(["preflight", str(preset)]) == 0
    printed = capsys.readouterr().out
    assert "weights" in printed
    assert all(label in printed for label in ("off", "draft", "elsewhere"))
    assert main(["preflight", "nowhere"]) == 2


PAIR = {"target": "small", "speculation": draft("stranger")}
# Settings of a side, whether the processor multiplies bfloat16, why it is hopeless, whether changes are offered.
HOPELESS: list[tuple[dict[str, Any], bool, list[str], bool]] = [
    (PAIR, True, ["preflight.other_vocabulary"], True),
    # In float32 two sequences of 32,768 tokens need 1.5 GiB of KV cache, of 1: the pair is still named first.
    (PAIR, False, ["preflight.other_vocabulary", "preflight.no_sequence"], True),
    ({"target": "huge", "knobs": {"max_model_len": 2048}}, True, ["preflight.weights_too_big"], False),
    ({"target": "huge", "knobs": {"max_model_len": 2048}}, False, ["preflight.weights_too_big"], False),
    ({"target": "long"}, True, ["preflight.no_sequence"], True),
    ({"target": "long"}, False, ["preflight.no_sequence"], True),
    ({"target": "small", "speculation": {"method": "suffix"}}, True, ["preflight.method_not_on_cpu"], True),
    ({"target": "small", "speculation": {"method": "suffix"}}, False, ["preflight.method_not_on_cpu"], True),
]


def named(problem: Message) -> list[str]:
    """The ids of what may be several problems in one."""
    inner = [value for value in problem.params.values() if isinstance(value, Message)]
    return [message_id for each in inner for message_id in named(each)] or [problem.message_id]


async def test_sides_on_one_card_start_at_once_with_equal_room(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_cpu(monkeypatch)
    monkeypatch.setattr("playground.engine.devices.machine", lambda: machine(H200))
    monkeypatch.setattr("playground.engine.runtime.probe", lambda config, name: runtime())
    host = Host(config)
    host.open()
    settings = [EngineSettings.model_validate({"target": name}) for name in ("small", "big")]
    sides = tuple(Side(label=label, engine=each) for label, each in zip("AB", settings, strict=True))
    comparison = host.comparison(sides, Workload(prompt="x"))
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished)
    assert comparison.run.status == "done"
    commands = [side.command.split() for side in comparison.run.sides]
    rooms = {word for words in commands for word in words if word.startswith(kv_room.FLAG)}
    assert len(rooms) == 1
    assert all("--gpu-memory-utilization=0.45" in words for words in commands)
    # What an earlier start left is nobody's business who reads the command.
    assert not any("CACHE" in word for words in commands for word in words)
    await host.close()


@pytest.mark.parametrize(("second", "native_bf16", "message_ids", "mended"), HOPELESS)
async def test_a_hopeless_start_is_refused(
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    second: dict[str, Any],
    native_bf16: bool,
    message_ids: list[str],
    mended: bool,
) -> None:
    """Before any engine starts; the run tells which side, and why: every reason that is certain."""
    on_cpu(monkeypatch, native_bf16)
    host = Host(config)
    host.open()
    settings = [
        EngineSettings.model_validate(each)
        for each in ({"target": "small", "knobs": {"max_model_len": 1024}}, second)
    ]
    sides = tuple(Side(label=label, engine=each) for label, each in zip("AB", settings, strict=True))
    comparison = host.comparison(sides, Workload(prompt="x"))
    await host.start(comparison, "a test")
    await until(lambda: comparison.finished)
    assert comparison.run.status == "failed"
    assert not host.pool.engines
    problem = comparison.run.sides[1].problem
    assert problem is not None
    assert named(problem) == message_ids
    assert comparison.run.problem is not None
    assert comparison.run.problem.params["side"] == "B"
    remedy = remedy_of(comparison.run.sides[1], {})
    assert (remedy is not None and remedy.changes != ()) == mended
    for locale in LOCALES:
        assert say_message(problem, locale) in say_message(comparison.run.problem, locale)
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.problem == comparison.run.problem
    await host.close()


@pytest.mark.parametrize("part", ["read", "judge"])
def test_an_odd_model_is_told_and_never_refused(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, part: str
) -> None:
    """Whatever nobody thought of: only its own side's check is missing."""

    def odd(*_: object, **__: object) -> None:
        raise MemoryError("odd")

    sides = {"target": "small"}, {"target": "big", "speculation": draft("huge")}
    if part == "read":
        ordinary = preflight.inspection.read
        monkeypatch.setattr(
            preflight.inspection,
            "read",
            lambda config, name, **more: odd() if name == "huge" else ordinary(config, name, **more),
        )
    else:
        monkeypatch.setattr(preflight.pair, "_sizes", odd)
    good, bad = assessed(config, *sides, host=machine(H200))
    assert good.fits
    assert (bad.fits, bad.hopeless) == (None, None)
    assert bad.memory[0].problem.message_id == "preflight.unreadable"
    assert bad.memory[0].level == "unknown"
    assert "MemoryError: odd" in caplog.text
    for locale in LOCALES:
        assert preflight_report.reasons(bad, locale)
    check("preflight", preflight_document([good, bad]))


@pytest.mark.parametrize("size", [2**31, 0, -3])
@pytest.mark.parametrize("key", ["num_hidden_layers", "max_position_embeddings", "vocab_size", "hidden_size"])
def test_sizes_at_their_limits_are_judged(config: Config, key: str, size: int) -> None:
    model_at(config, "odd", "7b", **{key: size})
    for device in ("cpu", "cuda"):
        (found,) = assessed(config, {"target": "odd"}, host=machine(H200), device=device)
        assert found.issues or found.fits
        assert all(issue.problem.message_id != "preflight.unreadable" for issue in found.issues)

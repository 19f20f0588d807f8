"""Settings -> argv and environment, for a runtime of known flags."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.engine import caches
from playground.engine.command import PER_STEP_FLAG, Command, build, check
from playground.engine.devices import Placement
from playground.engine.runtime import Runtime

SWITCHES = {"--enable-prefix-caching", "--no-enable-prefix-caching", "--enforce-eager"}
VALUES = {"--dtype", "--max-num-seqs", "--gpu-memory-utilization", "--kv-cache-memory-bytes", "--kv-cache-dtype"}
CPU = Placement("cpu", cores=(2, 3))
GPU = Placement("cuda", gpus=(1,), contended=False)
SHARED = Placement("cuda", gpus=(0,), sharing=2)


def runtime(device: str = "cpu", flags: set[str] = frozenset(), openmp: str | None = None) -> Runtime:
    known = frozenset(SWITCHES | VALUES | flags)
    return Runtime("default", Path("/py"), "0.32.0", device, "vllm.entry", openmp and Path(openmp), known)


def built(
    settings: dict[str, Any] | None = None,
    placement: Placement = CPU,
    *,
    its_runtime: Runtime | None = None,
    draft: Path | None = None,
    native_bf16: bool = True,
) -> Command:
    return build(
        EngineSettings.model_validate({"target": "owner/name", **(settings or {})}),
        its_runtime or runtime(placement.device),
        placement,
        target=Path("/models/t"),
        draft=draft,
        uds=Path("/s/e.sock"),
        native_bf16=native_bf16,
        cpu_kv_gib=3,
    )


def value_of(command: Command, flag: str) -> str | None:
    """None if the flag is absent; it must not stand there twice."""
    values = [word.removeprefix(f"{flag}=") for word in command.argv if word.startswith(f"{flag}=")]
    assert len(values) <= 1
    return values[0] if values else None


def test_plain_command() -> None:
    command = built()
    assert command.argv == (
        *("/py", "-m", "vllm.entry", "--model=/models/t", "--served-model-name=playground"),
        # The default host is every interface, although only the socket is meant.
        *("--host=127.0.0.1", "--uds=/s/e.sock"),
    )
    assert command.added == {"VLLM_CPU_OMP_THREADS_BIND": "2,3", "VLLM_CPU_KVCACHE_SPACE": "3"}


def test_reads_as_one_would_type_it() -> None:
    command = Command(("/py", "--speculative-config", '{"a": 1}'), {"X": "1 2"})
    assert shlex.split(str(command)) == ["X=1 2", "/py", "--speculative-config", '{"a": 1}']


@pytest.mark.parametrize(
    ("knobs", "native_bf16", "placement", "dtype"),
    [
        ({}, False, CPU, "float32"),
        ({}, True, CPU, None),
        ({"dtype": "bfloat16"}, False, CPU, "bfloat16"),
        # The processor has no say in what a GPU computes with.
        ({}, False, GPU, None),
    ],
)
def test_dtype(knobs: dict[str, str], native_bf16: bool, placement: Placement, dtype: str | None) -> None:
    assert value_of(built({"knobs": knobs}, placement, native_bf16=native_bf16), "--dtype") == dtype


@pytest.mark.parametrize(
    ("knobs", "placement", "utilization"),
    [
        ({}, GPU, None),
        ({}, SHARED, "0.45"),
        ({}, Placement("cuda", gpus=(0,), sharing=3), "0.3"),
        ({"gpu_memory_utilization": 0.7}, SHARED, "0.7"),
        # vLLM looks whether its share is free, also where it does not measure.
        ({"kv_cache_memory_bytes": 1000}, SHARED, "0.45"),
    ],
)
def test_room_on_a_shared_gpu(knobs: dict[str, Any], placement: Placement, utilization: str | None) -> None:
    assert value_of(built({"knobs": knobs}, placement), "--gpu-memory-utilization") == utilization


@pytest.mark.parametrize(
    ("placement", "devices"), [(GPU, "1"), (Placement("cuda", gpus=(0, 2), contended=False), "0,2")]
)
def test_gpu_environment(placement: Placement, devices: str) -> None:
    added = built(placement=placement).added
    assert added["CUDA_VISIBLE_DEVICES"] == devices
    assert not [name for name in added if name.startswith("VLLM_CPU")]


def test_cpu_kv_space_is_left_to_the_knob() -> None:
    command = built({"knobs": {"kv_cache_memory_bytes": 1000}})
    assert "VLLM_CPU_KVCACHE_SPACE" not in command.added
    assert value_of(command, "--kv-cache-memory-bytes") == "1000"


def test_openmp_is_preloaded_on_a_cpu_only() -> None:
    assert built(its_runtime=runtime(openmp="/lib/iomp")).added["LD_PRELOAD"] == "/lib/iomp"
    assert "LD_PRELOAD" not in built(placement=GPU, its_runtime=runtime("cuda", openmp="/lib/iomp")).added


def test_what_earlier_starts_left_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("VLLM_CACHE_ROOT", raising=False)
    folder = tmp_path / "vllm-ab-playground"
    assert caches.variables(runtime()) == {"VLLM_CACHE_ROOT": str(folder / "vllm")}
    bare = caches.variables(replace(runtime(), bytecode=False))
    assert bare["PYTHONPYCACHEPREFIX"] == str(folder / "bytecode")
    assert bare["PYTHONDONTWRITEBYTECODE"] == ""
    # The user's own stays.
    monkeypatch.setenv("VLLM_CACHE_ROOT", "/elsewhere")
    assert caches.variables(runtime()) == {}


@pytest.mark.parametrize(
    ("knob", "value", "argv"),
    [
        ("enable_prefix_caching", True, ["--enable-prefix-caching"]),
        ("enable_prefix_caching", False, ["--no-enable-prefix-caching"]),
        # A switch that cannot be negated is off when absent.
        ("enforce_eager", False, []),
        ("max_num_seqs", 16, ["--max-num-seqs=16"]),
        ("kv_cache_dtype", "fp8", ["--kv-cache-dtype=fp8"]),
    ],
)
def test_knob(knob: str, value: object, argv: list[str]) -> None:
    plain = len(built().argv)
    assert list(built({"knobs": {knob: value}}).argv[plain:]) == argv


def test_a_knob_that_the_runtime_lacks_is_refused() -> None:
    settings = EngineSettings.model_validate({"target": "t", "knobs": {"block_size": 16}})
    with pytest.raises(InvalidInput) as caught:
        check(settings, runtime(), "A")
    assert caught.value.message_id == "settings.flag_missing"
    assert (
        caught.value.params | {"side": "A", "key": "knobs.block_size", "version": "0.32.0"} == caught.value.params
    )


def test_speculation() -> None:
    speculation = {"method": "draft_model", "model": "owner/draft", "num_speculative_tokens": 3}
    command = built({"speculation": speculation}, draft=Path("/models/d"))
    given = json.loads(value_of(command, "--speculative-config") or "")
    # The draft as a path that the engine can open, and nothing that was not set.
    assert given == {"method": "draft_model", "model": "/models/d", "num_speculative_tokens": 3}


def test_ngram_has_no_model() -> None:
    given = json.loads(value_of(built({"speculation": {"method": "ngram"}}), "--speculative-config") or "")
    expected = {"num_speculative_tokens": 5, "prompt_lookup_max": 5, "prompt_lookup_min": 2}
    assert given == {"method": "ngram", **expected}


@pytest.mark.parametrize(
    ("speculation", "flags", "detailed"),
    [
        ({"method": "ngram"}, {PER_STEP_FLAG}, "detailed"),
        # An older runtime lacks the flag; vLLM raises if it stands there without speculation.
        ({"method": "ngram"}, set(), None),
        ({"method": "off"}, {PER_STEP_FLAG}, None),
    ],
)
def test_step_record(speculation: dict[str, str], flags: set[str], detailed: str | None) -> None:
    command = built({"speculation": speculation}, its_runtime=runtime(flags=flags))
    assert value_of(command, PER_STEP_FLAG) == detailed
    assert (value_of(command, "--speculative-config") is not None) == (speculation["method"] != "off")


def test_what_the_host_has_to_allow() -> None:
    assert "--trust-remote-code" not in built().argv
    command = built({"trust_remote_code": True, "extra_flags": ["--stream-interval", "-7"]})
    assert command.argv[-2:] == ("--trust-remote-code", "--stream-interval=-7")


def test_a_knob_without_an_option_is_a_variable() -> None:
    """vLLM reads which runner to use from its environment alone."""
    command = built({"knobs": {"use_v2_model_runner": False}}, GPU)
    assert command.added["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert not [word for word in command.argv if "runner" in word]
    check(EngineSettings(target="owner/name", knobs=Knobs(use_v2_model_runner=True)), runtime(), "A")
    assert "VLLM_USE_V2_MODEL_RUNNER" not in built({}, GPU).added


def test_cards_that_a_side_names_are_no_option() -> None:
    command = built({"knobs": {"cuda_visible_devices": "1"}}, GPU)
    assert command.added["CUDA_VISIBLE_DEVICES"] == "1"
    assert not [word for word in command.argv if "visible" in word]

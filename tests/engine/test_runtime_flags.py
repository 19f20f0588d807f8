"""What a version of vLLM lacks is told before anything starts.

The flags are those of vLLM 0.26.0's, 0.32.0's and 0.33.0's own parsers, as the probe read them (of 0.33.0 the GPU
build, told that it was one for the CPU).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import CARDS, VARIABLES, EngineSettings, Knobs
from playground.domain.vllm_cli.owned import FIELDS, REASONS
from playground.engine import runtime
from playground.engine.command import check
from playground.engine.runtime import Runtime
from playground.i18n import LOCALES, say_message

FOLDER = Path(__file__).with_name("vllm_flags")
VERSIONS = ("0.26.0", "0.32.0", "0.33.0")


def version(number: str) -> Runtime:
    parser = json.loads((FOLDER / f"{number}.json").read_text())
    # The older recordings have no names.
    known = parser.get("flags", parser)
    return Runtime(
        "default",
        Path("/py"),
        number,
        "cuda",
        "vllm.entry",
        None,
        frozenset(known),
        choices={flag: tuple(values) for flag, values in known.items() if values},
        names=parser.get("names") or {},
        lists=frozenset(parser.get("lists") or ()),
    )


def settings(**given: Any) -> EngineSettings:
    return EngineSettings.model_validate({"target": "t", **given})


@pytest.mark.parametrize("number", VERSIONS)
@pytest.mark.parametrize("knob", [name for name in Knobs.model_fields if name not in (*VARIABLES, CARDS)])
def test_every_knob_of_the_form_is_known(number: str, knob: str) -> None:
    known = version(number)
    assert known.knows(f"--{knob.replace('_', '-')}")
    # A switch can be turned off, also where a version has another name for that.
    if "bool" in str(Knobs.model_fields[knob].annotation):
        assert known.knows(f"--no-{knob.replace('_', '-')}")


@pytest.mark.parametrize(
    ("number", "given", "named"),
    [
        ("0.33.0", {"extra_flags": ["--max-num-partial-prefills", "2"]}, "long_prefill_token_threshold"),
        ("0.33.0", {"extra_flags": ["--calculate-kv-scales"]}, "checkpoint"),
        ("0.26.0", {"extra_flags": ["--per-request-spec-decode-metrics=detailed"]}, "nearest"),
        ("0.26.0", {"extra_flags": ["--max-num-sequences", "4"]}, "--max-num-seqs"),
        ("0.26.0", {"knobs": {"kv_cache_dtype": "fp9"}}, "fp8_e4m3"),
        ("0.26.0", {"knobs": {"kv_cache_dtype": "ultraquant_4bit"}}, "turboquant_4bit_nc"),
    ],
)
def test_what_a_version_lacks(number: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(settings(**given), version(number), "B")
    for locale in LOCALES:
        sentence = say_message(caught.value, locale)
        assert "B" in sentence
        assert number in sentence
    assert named in say_message(caught.value)


@pytest.mark.parametrize(
    ("number", "given"),
    [
        ("0.26.0", {"extra_flags": ["--max-num-partial-prefills", "2"]}),
        (
            "0.33.0",
            {"extra_flags": ["--cpu_offload_gb", "2", "--compilation-config.mode=3", "-O3"]},
        ),
        ("0.32.0", {"extra_flags": ["-O", "2", "--cudagraph-capture-sizes", "1", "2", "--stream-interval", "-1"]}),
        ("0.32.0", {"extra_flags": ["--generation-config", "vllm", "--hf-overrides", '{"backend": "x"}']}),
        ("0.33.0", {"knobs": {"kv_cache_dtype": "fp8", "enable_prefix_caching": False}}),
        ("0.26.0", {"speculation": {"method": "eagle3", "model": "e"}}),
        ("0.33.0", {"speculation": {"method": "suffix"}}),
    ],
)
def test_what_a_version_has(number: str, given: dict[str, Any]) -> None:
    check(settings(**given), version(number), "A")


OWNED = {
    "owned.field": [
        "--model /m",
        "--model=/m",
        "--max-model-len 5",
        "--max_model_len=5",
        "--gpu_memory-utilization 1",
        "--device-memory-utilization=1",
        "-tp 2",
        "-tp=2",
        "-q fp8",
        "--no-enable-prefix-caching",
        "--trust-remote-code",
        "--trust_remote_code",
        "--no-trust-remote-code",
        "--speculative-config {}",
        "--speculative_config={}",
        "--speculative-config.method ngram",
        "--speculative_config.method=ngram",
        "-sc {}",
        "-sc={}",
        "-sc.method=ngram",
        "-sc.a+ ngram",
        "--spec-method ngram",
        "--spec_model=x",
        "--spec-tokens 5",
    ],
    "owned.host": [
        "--host 0.0.0.0",
        "--port=80",
        "--uds /x",
        "--api-key a b",
        "--api_key=a",
        "--root-path /",
        "--ssl-keyfile k",
        "--ssl_certfile=k",
        "--enable-ssl-refresh",
        '--allowed-origins ["*"]',
        "--allow-credentials",
        "--served-model-name a b",
        "--hf-token x",
        "--download-dir /x",
        "--headless",
        "-asc 2",
        "--grpc",
    ],
    "owned.code": [
        "--middleware os.system",
        "--worker-cls x.y",
        "--worker_extension_cls=x.y",
        "--logits-processors a b",
        "--tool-parser-plugin /x.py",
        "--reasoning-parser-plugin=/x.py",
        "--scheduler-cls x.y",
        "--trust-request-chat-template",
        "-cc.backend=os.system",
        "-cc.inductor_compile_config.cpp.cxx=/tmp/x",
        "--compilation_config.backend os.system",
        '--compilation-config {"pass_config":{"\\u0062ackend":"x"}}',
        '-cc={"backend":"x"}',
        '--structured-outputs-config={"reasoning_parser_plugin":"/x.py"}',
    ],
    "owned.files": [
        "--config /x.yaml",
        "--config=/x.yaml",
        "--chat-template /etc/passwd",
        "--allowed-local-media-path=/",
        "--tokenizer /x",
        "--lora-modules a=/x b=/y",
        "--profiler-config.torch_profiler_dir /x",
        "-cc.debug_dump_path /x",
    ],
    # vLLM takes 1k for 1000, which no JSON parser does.
    "owned.not_json": [
        '-cc={"backend":"os.system","cudagraph_num_of_warmups":1k}',
        '--compilation-config {"\\u0062ackend":"x","n":1k}',
    ],
    "owned.network": [
        "--kv-transfer-config {}",
        "--otlp-traces-endpoint http://x",
        "--tool-server x:1",
        "-dpa 10.0.0.1",
        "--data_parallel_rpc_port=1",
        "-n 2",
        "--master-addr x",
        "--kv-events-config.endpoint=tcp://*:5557",
    ],
}


@pytest.mark.parametrize(("reason", "words"), [(reason, words) for reason in OWNED for words in OWNED[reason]])
def test_what_the_playground_owns(reason: str, words: str) -> None:
    """In every spelling that vLLM's parser takes."""
    extra = ["--stream-interval", "2", *words.split()]
    with pytest.raises(InvalidInput) as caught:
        check(settings(extra_flags=extra), version("0.32.0"), "A")
    assert caught.value.message_id == "settings.flag_owned"
    why = caught.value.params["why"]
    assert isinstance(why, Message)
    assert why.message_id == reason
    for locale in LOCALES:
        assert say_message(caught.value, locale)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"method": "medusa", "model": "org/heads"}, None),
        ({"method": "gemma4_mtp", "model": "org/assistant"}, None),
        ({"method": "custom_class", "model": "os.path"}, "owned.code"),
        ({"method": "extract_hidden_states"}, "owned.code"),
        ({"method": "dflash", "draft-load-config": {}}, "owned.code"),
        ({"model": "os.path"}, "owned.field"),
        ([], "owned.not_json"),
    ],
)
def test_a_speculation_without_fields(config: Any, reason: str | None) -> None:
    side = settings(extra_flags=["--speculative-config", json.dumps(config)])
    assert side.speculates is None
    if reason is None:
        check(side, version("0.32.0"), "A")
        return
    with pytest.raises(InvalidInput) as caught:
        check(side, version("0.32.0"), "A")
    why = caught.value.params["why"]
    assert isinstance(why, Message)
    assert why.message_id == reason


def test_two_speculations() -> None:
    words = ["--speculative-config", '{"method": "medusa"}']
    with pytest.raises(InvalidInput, match=r"owned\.field"):
        check(settings(speculation={"method": "ngram"}, extra_flags=words), version("0.32.0"), "A")


@pytest.mark.parametrize(
    "words",
    [
        "--mod /m",
        "--trust",
        "--speculative-conf.method=n",
        "--hos 0.0.0.0",
        "-s {}",
        "-sc{}",
        "-d 2",
        "-",
        "--",
        "-1",
    ],
)
def test_beginnings_of_flags(words: str) -> None:
    """argparse takes them for the flag, and for short ones what follows for a value."""
    with pytest.raises(InvalidInput) as caught:
        check(settings(extra_flags=words.split()), version("0.32.0"), "A")
    assert caught.value.message_id == "settings.flag_missing"


@pytest.mark.parametrize(
    "words", ["/m", "--hf-overrides.x --stream-interval=2", "--stream-interval=1 /m", "--stream-interval 1 /m"]
)
def test_words_that_stand_alone(words: str) -> None:
    """One of them would be the model."""
    with pytest.raises(InvalidInput) as caught:
        check(settings(extra_flags=words.split()), version("0.32.0"), "A")
    assert caught.value.message_id == "settings.flag_stray"


@pytest.mark.parametrize("number", VERSIONS)
def test_every_owned_name_has_one_reason(number: str) -> None:
    known = version(number)
    names = {known.name_of(flag) for flag in known.flags}
    assert {"host", "middleware", "config", "kv_transfer_config"} <= names
    groups = [*REASONS.values(), set(FIELDS)]
    assert len(set.union(*groups)) == sum(map(len, groups))


def test_a_method_that_is_gone() -> None:
    """None of the form's has gone so far: a runtime without it stands for the next version."""
    known = version("0.33.0")
    without = Runtime(
        "default",
        Path("/py"),
        "0.40.0",
        "cuda",
        "vllm.entry",
        None,
        known.flags,
        choices={"--spec-method": ("ngram", "mtp")},
    )
    with pytest.raises(InvalidInput) as caught:
        check(settings(speculation={"method": "suffix"}), without, "A")
    assert caught.value.params["accepted"] == "ngram, mtp"


def test_asked_once_a_version(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers: dict[str, dict[str, Any]] = {
        "identity": {"version": "1", "device": "cpu", "entry_point": "e", "openmp": None}
        | {"heterogeneous_vocab": False, "arctic_inference": False, "schedules": True, "bytecode": True},
        "flags": {"flags": {"--dtype": ["auto", "half"], "--seed": None}},
    }

    def ask(python: Path, question: str, timeout_s: float) -> dict[str, Any]:
        asked.append(question)
        return answers[question]

    monkeypatch.setattr(runtime, "_ask", ask)
    # As an older version made it; nobody else comes past the state folder.
    (config.state / "runtimes").mkdir(mode=0o755)
    for _ in range(2):
        found = runtime.probe(config)
        assert found.flags == {"--dtype", "--seed"}
        assert found.choices == {"--dtype": ("auto", "half")}
    answers["identity"]["version"] = "2"
    runtime.probe(config)
    assert asked == ["identity", "flags", "identity", "identity", "flags"]

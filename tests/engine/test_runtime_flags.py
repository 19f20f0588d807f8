"""What a version of vLLM lacks is told before anything starts.

The flags are those of vLLM 0.26.0's and 0.33.0's own parsers, as the probe read them (of 0.33.0 the GPU build,
told that it was one for the CPU).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.engine import runtime
from playground.engine.command import check
from playground.engine.runtime import Runtime
from playground.i18n import LOCALES, say_message

FOLDER = Path(__file__).with_name("vllm_flags")
VERSIONS = ("0.26.0", "0.33.0")


def version(number: str) -> Runtime:
    known: dict[str, list[str] | None] = json.loads((FOLDER / f"{number}.json").read_text())
    choices = {flag: tuple(values) for flag, values in known.items() if values}
    return Runtime("default", Path("/py"), number, "cuda", "vllm.entry", None, frozenset(known), choices=choices)


def settings(**given: Any) -> EngineSettings:
    return EngineSettings.model_validate({"target": "t", **given})


@pytest.mark.parametrize("number", VERSIONS)
@pytest.mark.parametrize("knob", Knobs.model_fields)
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
        ("0.33.0", {"extra_flags": ["--max_num_seqs", "2", "--speculative-config.method=ngram"]}),
        ("0.33.0", {"knobs": {"kv_cache_dtype": "fp8", "enable_prefix_caching": False}}),
        ("0.26.0", {"speculation": {"method": "eagle3", "model": "e"}}),
        ("0.33.0", {"speculation": {"method": "suffix"}}),
    ],
)
def test_what_a_version_has(number: str, given: dict[str, Any]) -> None:
    check(settings(**given), version(number), "A")


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
        | {"heterogeneous_vocab": False, "arctic_inference": False},
        "flags": {"flags": {"--dtype": ["auto", "half"], "--seed": None}},
    }

    def ask(python: Path, question: str, timeout_s: float) -> dict[str, Any]:
        asked.append(question)
        return answers[question]

    monkeypatch.setattr(runtime, "_ask", ask)
    for _ in range(2):
        found = runtime.probe(config)
        assert found.flags == {"--dtype", "--seed"}
        assert found.choices == {"--dtype": ("auto", "half")}
    answers["identity"]["version"] = "2"
    runtime.probe(config)
    assert asked == ["identity", "flags", "identity", "identity", "flags"]

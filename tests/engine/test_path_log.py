"""An engine's path by its log and its metrics, in tests/cases/engine_paths."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from playground.domain.record.engine_path import DECIDED_BY, EnginePath, listed, unset_differences
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel
from playground.engine.path_log import path_of, read
from playground.i18n import LOCALES, say, say_message

CASES = {
    f"{path.stem}: {case['name']}": case
    for path in sorted((ROOT / "tests" / "cases" / "engine_paths").glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
}


def expected(case: dict[str, Any]) -> EnginePath:
    return EnginePath(**{name: tuple(v) if isinstance(v, list) else v for name, v in case["path"].items()})


@pytest.mark.parametrize("name", CASES)
def test_a_log_and_its_path(name: str) -> None:
    case = CASES[name]
    assert path_of(case["log"], case.get("metrics", "")) == expected(case)


def test_a_log_that_is_gone(tmp_path: Path) -> None:
    assert read(tmp_path / "none.log", "") == EnginePath()


def test_a_long_line_is_read_whole(tmp_path: Path) -> None:
    """What is followed during a start is cut at 4,000 characters, and the graphs stand behind them."""
    log = tmp_path / "a.log"
    config = f"splitting_ops: {'x' * 6000}, 'cudagraph_mode': <CUDAGraphMode.FULL: 2>"
    log.write_text(f"[core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: {config}\n")
    assert read(log, "").cudagraph_mode == "FULL"


def test_what_is_damaged_leaves_the_rest() -> None:
    """Numbers without end, sizes that are none, a line of metrics that was cut off."""
    config = "'cudagraph_capture_sizes': [,], 'cudagraph_mode': <CUDAGraphMode.FULL: 2>"
    begin = f"[core.py:1] Initializing a V1 LLM engine (v0.32.0) with config: {config}"
    path = path_of(f"{begin}\nKV cache size: {'9' * 5000} tokens\n", 'vllm:cache_config_info{block_size="16",')
    assert (path.cudagraph_mode, path.cudagraph_sizes, path.kv_cache_tokens) == ("FULL", None, None)


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    name=st.sampled_from(sorted(CASES)),
    cut=st.integers(0, 2500),
    end=st.integers(0, 2500),
    junk=st.text(max_size=20),
    metrics=st.sampled_from(["", "vllm:cache_config_info{block", 'vllm:cache_config_info{a="1"} 1', "x"]),
)
def test_any_part_of_a_log_is_read(name: str, cut: int, end: int, junk: str, metrics: str) -> None:
    log = CASES[name]["log"]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(log[cut:] + junk + log[:end])
        file.flush()
        assert isinstance(read(Path(file.name), metrics), EnginePath)


OFF, NGRAM, DRAFT = (expected(CASES[f"0.26-h200: {name}"]) for name in ("off", "ngram", "draft"))
OTHER = expected(CASES["0.26-gpu: a draft model with another attention backend"])


NONE = Knobs()


def sides(first: Knobs = NONE, second: Knobs = NONE, **more: Any) -> tuple[Side, Side]:
    draft = EngineSettings(target="m", knobs=second, speculation=DraftModel(model="d"), **more)
    return Side(label="off", engine=EngineSettings(target="m", knobs=first)), Side(label="draft", engine=draft)


def test_what_nobody_set() -> None:
    """The cache's room and the graphs' sizes follow from the draft, and limits this near explain no speed."""
    for path in (NGRAM, DRAFT):
        unset = unset_differences(sides(), (OFF, path))
        assert say_message(listed(unset)) == "asynchronous scheduling (on / off), model runner (V2 / V1)"
    assert [difference.name for difference in unset_differences(sides(), (OFF, OTHER))] == [
        *("async_scheduling", "model_runner", "cudagraph_mode", "max_num_scheduled_tokens")
    ]


@pytest.mark.parametrize(
    ("pair", "left"),
    [
        (sides(Knobs(async_scheduling=True)), {"model_runner", "cudagraph_mode", "max_num_scheduled_tokens"}),
        (sides(second=Knobs(enforce_eager=True, max_num_seqs=4)), {"async_scheduling", "model_runner"}),
        # A flag of its own, or another vLLM, may change any of it.
        (sides(extra_flags=("-O0",)), set()),
        (sides(runtime="other"), set()),
    ],
)
def test_what_somebody_set(pair: tuple[Side, Side], left: set[str]) -> None:
    assert {difference.name for difference in unset_differences(pair, (OFF, OTHER))} == left


def test_what_is_unknown_differs_from_nothing() -> None:
    assert unset_differences(sides(), (OFF, None)) == []
    assert unset_differences(sides(), (OFF, EnginePath())) == []


@pytest.mark.parametrize("locale", LOCALES)
def test_every_part_has_a_name(locale: Any) -> None:
    names = EnginePath.__dataclass_fields__.keys()
    assert all(say(f"path.{name}", locale) for name in names)
    assert DECIDED_BY.keys() <= names

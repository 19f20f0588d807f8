"""Prompts files of all kinds, in tests/cases/prompts: what is read, skipped with a reason, or refused."""

from __future__ import annotations

import gzip
import json
import sys
import tomllib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from playground import prompts
from playground.domain.errors import InvalidInput
from playground.domain.limits import Limits
from playground.domain.message import Message
from playground.i18n import LOCALES, say_message
from playground.prompts.json_values import JsonValues

CASES = {
    f"{path.stem} {number}: {case['file']}": case
    for path in sorted((ROOT / "tests" / "cases" / "prompts").glob("*.toml"))
    for number, case in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["case"])
}


def written(folder: Path, case: dict[str, Any]) -> Path:
    content = case["text"].encode(case.get("encoding", "utf-8"))
    file = folder / case["file"]
    file.write_bytes(gzip.compress(content) if case.get("gzip") else content)
    return file


@pytest.mark.parametrize("name", CASES)
def test_files(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    file = written(tmp_path, case)
    if "refused" in case:
        with pytest.raises(InvalidInput) as caught:
            prompts.load(str(file))
        assert caught.value.message_id == case["refused"]
        english, _ = (say_message(caught.value, locale) for locale in LOCALES)
        assert file.name in english
        assert case.get("says", "") in english
        return
    result = prompts.read(file)
    assert [prompt.conversation[-1].content for prompt in result.prompts] == case["prompts"]
    assert all(prompt.conversation[-1].role == "user" for prompt in result.prompts)
    limits = [prompt.max_tokens or 0 for prompt in result.prompts]
    assert limits == case.get("limits", [0] * len(limits))
    if "turns" in case:
        assert [message.role for message in result.prompts[0].conversation] == case["turns"]
    assert result.read is not None
    assert (result.read.read, result.read.sampled) == (len(limits), len(limits))
    assert {r.why.message_id: r.count for r in result.read.skipped} == case.get("skipped", {})
    assert {r.why.message_id: r.count for r in result.read.changed} == case.get("changed", {})
    for remark in result.read.remarks:
        assert all(say_message(remark, locale) for locale in LOCALES)


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {"prompt": "one", "messages": None, "output_tokens": 5},
        {"prompt": None, "messages": [{"role": "user", "content": "two"}], "output_tokens": None},
        {"prompt": " ", "messages": None, "output_tokens": None},
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    result = prompts.read(tmp_path / "a.parquet")
    assert [(p.conversation[-1].content, p.max_tokens) for p in result.prompts] == [("one", 5), ("two", None)]
    assert result.read is not None
    assert [remark.first for remark in result.read.skipped] == [(Message("prompts.row", {"number": 3}),)]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInput) as caught:
        prompts.read(tmp_path / "a.parquet")
    assert caught.value.message_id == "prompts.no_pyarrow"


LIMITS = Limits(prompts=100, prompts_characters=10_000)


def test_more_prompts_than_the_limit_are_sampled(tmp_path: Path) -> None:
    """With the same seed the same ones, in the file's order, from all over the file."""
    file = tmp_path / "a.json"
    file.write_text(json.dumps([{"prompt": f"{number:05}"} for number in range(5000)]))
    first, again, other = (prompts.read(file, LIMITS, seed) for seed in (1, 1, 2))
    assert first == again != other
    texts = [prompt.conversation[-1].content for prompt in first.prompts]
    assert len(set(texts)) == 100
    assert texts == sorted(texts)
    assert abs(sum(map(int, texts)) / 100 - 2500) < 500
    assert first.read is not None
    assert (first.read.read, first.read.sampled, first.read.seed) == (5000, 100, 1)
    assert [remark.message_id for remark in first.read.remarks] == ["prompts.sampled"]


def test_a_sample_is_smaller_where_its_prompts_are_long(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text(f"{'long ' * 200}\n" * 300)
    read = prompts.read(file, LIMITS).read
    assert read is not None
    assert (read.read, read.sampled) == (300, 10)


@pytest.mark.parametrize(("name", "begin"), [("a.json", "["), ("a.jsonl", ""), ("a.csv", "prompt\n")])
def test_large_files_are_read_as_a_stream(tmp_path: Path, name: str, begin: str) -> None:
    """12 MB, of which a small part may be in memory at a time."""
    entry = "x" * 4000 if name == "a.csv" else json.dumps({"prompt": "x" * 4000})
    join, end = (",\n", "]") if begin == "[" else ("\n", "")
    (tmp_path / name).write_text(begin + join.join([entry] * 3000) + end)
    tracemalloc.start()
    try:
        read = prompts.read(tmp_path / name, LIMITS).read
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read is not None
    assert read.read == 3000
    assert most < 4_000_000


class Dripping:
    """A text that comes in pieces."""

    def __init__(self, text: str, size: int) -> None:
        self._pieces: Iterator[str] = iter([text[at : at + size] for at in range(0, len(text), size)])

    def read(self, size: int, /) -> str:
        return next(self._pieces, "")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=3), values, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.lists(JSON, max_size=5), st.sampled_from((None, 1, 4)), st.integers(1, 30))
def test_a_list_is_read_in_any_pieces(values: list[Any], indent: int | None, size: int) -> None:
    assert list(JsonValues(Dripping(json.dumps(values, indent=indent), size))) == values


ENTRIES = st.dictionaries(
    st.sampled_from(("prompt", "messages", "conversations", "turns", "role", "content", "from", "max_tokens")),
    JSON,
    max_size=3,
)
CONTENTS = st.one_of(
    st.binary(max_size=60),
    st.lists(ENTRIES | JSON, max_size=4).map(lambda entries: json.dumps(entries).encode()),
    st.lists(ENTRIES, max_size=4).map(lambda entries: "\n".join(map(json.dumps, entries)).encode()),
    st.text(alphabet='prompt,;\t"\n\r|=x[]{}', max_size=60).map(str.encode),
)
NAMES = st.sampled_from(("a.txt", "a.json", "a.jsonl", "a.csv", "a.tsv", "a.jsonl.gz", "a.parquet"))


@settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(NAMES, CONTENTS, st.booleans())
def test_any_file_is_read_or_refused(tmp_path: Path, name: str, content: bytes, packed: bool) -> None:
    (tmp_path / name).write_bytes(gzip.compress(content) if packed else content)
    refused = None
    try:
        assert prompts.load(str(tmp_path / name))
    except InvalidInput as error:
        refused = error
    assert refused is None or name in say_message(refused)


def test_a_packed_file_without_end_is_not_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.prompts.file.MOST_UNPACKED", 1_000_000)
    (tmp_path / "a.txt").write_bytes(gzip.compress(b"\n" * 5_000_000))
    with pytest.raises(InvalidInput, match="1,000,000 bytes unpacked"):
        prompts.read(tmp_path / "a.txt")

"""What servers send, in tests/cases/streams: how it is read, whatever the pieces in which it arrives."""

from __future__ import annotations

import gzip
import json
import tomllib
import zlib
from collections.abc import Callable
from typing import Any

import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.paths import ROOT

from playground.load.answer.sse import StreamError
from playground.load.answer.stream import StreamReader

CASES = {
    f"{path.stem}: {case['name']}": case
    for path in sorted((ROOT / "tests" / "cases" / "streams").glob("*.toml"))
    for case in tomllib.loads(path.read_text(encoding="utf-8"))["case"]
}
ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "deflate, raw": lambda text: zlib.compress(text, wbits=-15),
    "br": brotli.compress,
}


def response(case: dict[str, Any]) -> bytes:
    encoding = case.get("encoding", "")
    body = ENCODERS.get(encoding, bytes)(case["body"].encode())
    head = [
        f"HTTP/1.1 {case.get('status', '200 OK')}",
        f"content-type: {case.get('type', 'text/event-stream')}",
        f"content-length: {len(body)}",
        *([f"content-encoding: {encoding.partition(',')[0]}"] if encoding else []),
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def fed(data: bytes, size: int) -> tuple[StreamReader, StreamError | None]:
    reader = StreamReader(event_bytes=100_000, output_tokens=10_000, response_bytes=1_000_000)
    try:
        for start in range(0, len(data), size):
            reader.feed(1.0, data[start : start + size])
        reader.eof()
    except StreamError as problem:
        return reader, problem
    return reader, None


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", CASES)
def test_streams(name: str, size: int) -> None:
    case = CASES[name]
    reader, problem = fed(response(case), size)
    if "problem" in case:
        assert problem is not None
        assert problem.kind == case["problem"]
        assert case.get("says", "") in problem.detail
        assert "\n" not in problem.detail.strip()
        assert not reader.finished
        return
    assert problem is None
    deltas = reader.take()
    assert "".join(text for _, _, text, _ in deltas) == case["text"]
    assert reader.finished
    assert {key: getattr(reader, key) for key in ("output_tokens", "finish_reason") if key in case} == {
        key: case[key] for key in ("output_tokens", "finish_reason") if key in case
    }
    assert len(deltas) == case.get("pieces", len(deltas))


def test_json_lines_are_timed_as_they_come() -> None:
    reader = StreamReader()
    data = response(CASES["forms: chunks as JSON lines"])
    for number in range(len(data)):
        reader.feed(float(number), data[number : number + 1])
    first, second = (delta[0] for delta in reader.take())
    assert second - first == len(b'{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}\n')


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_what_is_large_only_after_decompression_is_refused(encoding: str) -> None:
    case = {"encoding": encoding, "body": ": keep-alive\n\n" * 1_000_000}
    reader, problem = fed(response(case), 1000)
    assert problem is not None
    assert (problem.kind, reader.finished) == ("answer_too_large", False)


CHOICE = st.dictionaries(
    st.sampled_from(("index", "delta", "message", "text", "finish_reason", "error", "token_ids")),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda values: (
            st.lists(values, max_size=3)
            | st.dictionaries(
                st.sampled_from(("content", "reasoning", "tool_calls", "function", "arguments", "type", "text")),
                values,
                max_size=3,
            )
        ),
        max_leaves=6,
    ),
    max_size=4,
)
EVENT = st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2)}).map(lambda e: json.dumps(e).encode())
BLOCK = st.one_of(
    st.binary(max_size=30),
    EVENT.map(lambda text: b"data: " + text + b"\n\n"),
    st.sampled_from((b"data: [DONE]\n\n", b"\r", b"event: error\n", b"{", b"\n", b"\xef\xbb\xbf")),
)


@settings(max_examples=150, derandomize=True, deadline=None)
@given(st.lists(BLOCK, max_size=8), st.sampled_from(("", "gzip", "deflate", "br")), st.integers(1, 40))
def test_any_bytes_end_in_an_answer_or_a_reason(blocks: list[bytes], encoding: str, size: int) -> None:
    head = f"HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\nconnection: close\r\n\r\n".encode()
    reader, problem = fed(head + b"".join(blocks), size)
    assert reader.finished or problem is not None

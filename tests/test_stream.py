"""The reader of one streamed response, fed as unkindly as a network may: byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_server import payload, role, token

from playground.load.stream import Delta, StreamProblem, StreamReader

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def chunked(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(content: dict[str, Any] | str, end: str = "\n\n") -> bytes:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return f"data: {text}{end}".encode()


def response(*events: bytes) -> bytes:
    return HEAD + b"".join(map(chunked, events)) + b"0\r\n\r\n"


def fed(data: bytes, size: int = 1) -> tuple[StreamReader, list[Delta]]:
    """All deltas; each is stamped with the number of the block that completed it."""
    reader = StreamReader()
    for number, start in enumerate(range(0, len(data), size)):
        reader.feed(float(number), data[start : start + size])
    return reader, reader.taken()


def texts_of(deltas: list[Delta]) -> list[str]:
    return [text for _, _, text, _ in deltas]


ANSWER = response(
    event(role()),
    event(token("汉", [1], completion_tokens=1)),
    event(token("字🙂", [2, 3], completion_tokens=3, finish="stop")),
    event(payload(completion_tokens=3)),
    event("[DONE]"),
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_block_size_does_not_matter(size: int) -> None:
    reader, deltas = fed(ANSWER, size)
    assert [delta[1:] for delta in deltas] == [(1, "汉", [1]), (2, "字🙂", [2, 3])]
    assert reader.finished
    assert (reader.finish_reason, reader.prompt_tokens, reader.output_tokens) == ("stop", 7, 3)
    reader.eof()


def test_a_delta_has_the_time_of_its_last_byte() -> None:
    _, deltas = fed(ANSWER)
    first_token_ends = ANSWER.index(b"\n\n", ANSWER.index("汉".encode())) + 1
    assert deltas[0][0] == first_token_ends


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n"])
def test_line_ends(end: str) -> None:
    _, deltas = fed(response(event(token("x", [1]), end), event("[DONE]", end)))
    assert texts_of(deltas) == ["x"]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b": keep-alive\n\n" + event(token("x", [1])), ["x"]),
        (b"event: message\nid: 1\n" + event(token("x", [1])), ["x"]),
        (b'data:{"choices":[{"text":"x"}]}\n\n', ["x"]),
        (event(payload({"reasoning_content": "hm"})), ["hm"]),
        (event(payload({"reasoning": "hm", "content": "ok"})), ["hmok"]),
        (event(payload({"content": None}, finish="stop")), []),
        (event(payload({"content": ""}, ids=[5])), [""]),
    ],
    ids=[
        "comment",
        "other fields",
        "completions",
        "reasoning",
        "reasoning, new name",
        "finish",
        "half a character",
    ],
)
def test_shapes(data: bytes, texts: list[str]) -> None:
    _, deltas = fed(response(data))
    assert texts_of(deltas) == texts


def test_usage_that_does_not_grow_bears_no_token() -> None:
    events = [event(token("x", completion_tokens=1)), event(token("", completion_tokens=1))]
    assert [tokens for _, tokens, _, _ in fed(response(*events))[1]] == [1]


def test_a_final_usage_bears_no_token() -> None:
    """`transformers serve` sends its only usage with the finish reason, after chunks that nobody counted."""
    reader, deltas = fed(response(event(token("x")), event(payload({}, finish="stop", completion_tokens=2))))
    assert [delta[1:3] for delta in deltas] == [(None, "x")]
    assert reader.output_tokens == 2


def test_a_final_usage_after_ids_counts_what_they_left_out() -> None:
    events = [event(token("x", [1, 2])), event(payload({}, finish="stop", completion_tokens=2))]
    assert [tokens for _, tokens, _, _ in fed(response(*events))[1]] == [2]
    events = [event(token("x", [1, 2])), event(token("y", completion_tokens=3))]
    assert [tokens for _, tokens, _, _ in fed(response(*events))[1]] == [2, 1]


def test_ends_without_done() -> None:
    """An endpoint that says why it finished, ends its response properly, and never says [DONE]."""
    reader, _ = fed(response(event(token("x", [1], finish="stop"))))
    assert reader.finished
    reader.eof()


def test_last_event_without_its_empty_line() -> None:
    _, deltas = fed(response(event(token("x", [1], finish="stop"), end="")))
    assert texts_of(deltas) == ["x"]


def test_step_record() -> None:
    record = {"num_spec_steps": 1, "per_step_accepted": [2], "per_step_drafted": [3]}
    final = payload(completion_tokens=4, metrics={"speculative_decoding": record})
    assert fed(response(event(final)))[0].speculation == record


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (ANSWER[:-40], "cut"),
        (HEAD, "cut"),
        (b"", "cut"),
        (response(event(token("x", [1]))), "cut"),
        (response(event("{")), "malformed"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "malformed"),
        (response(event({"error": "boom"})), "engine"),
        (b'HTTP/1.1 404 Not Found\r\ncontent-length: 17\r\n\r\n{"error": "none"}', "http"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "http"),
    ],
    ids=["tail lost", "no body", "nothing", "no finish", "no JSON", "no HTTP", "error", "404", "empty 500"],
)
def test_problems(data: bytes, kind: str) -> None:
    with pytest.raises(StreamProblem) as caught:
        fed(data)[0].eof()
    assert caught.value.kind == kind

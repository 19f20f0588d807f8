"""The reader of one streamed response, fed as unkindly as a network may: byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.fake_server import payload, role, token

from playground.load.answer.sse import StreamError
from playground.load.answer.stream import Delta, StreamReader

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
    return reader, reader.take()


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
        (event(token("x")) + event(payload({"content": None}, finish="stop")), ["x"]),
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
    assert fed(response(event(token("x")), event(final)))[0].speculation == record


def test_half_an_emoji_becomes_a_replacement_character() -> None:
    halves = r'{"choices":[{"delta":{"content":"a\ud83d"},"token_ids":[9],"finish_reason":"\ude42"}]}'
    reader, deltas = fed(response(event(halves), event(r'{"choices":[{"text":"\ud83d\ude42\ud83d"}]}')))
    assert texts_of(deltas) == ["a\ufffd", "🙂\ufffd"]
    assert reader.finish_reason == "\ufffd"


@pytest.mark.parametrize(
    "data",
    [
        response(event(r'{"error": {"message": "no \ud83d"}}')),
        b'HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n{"error": {"message": "no \\ud83d"}}',
    ],
    ids=["in the stream", "HTTP"],
)
def test_half_an_emoji_in_an_error(data: bytes) -> None:
    with pytest.raises(StreamError) as caught:
        fed(data)[0].eof()
    assert caught.value.detail.endswith("no \ufffd")


NO_COUNTS: list[Any] = [[1], {}, "7", 1.5, True, -1, 2**63, 2**64 - 1, 10**30]


@pytest.mark.parametrize("value", NO_COUNTS, ids=repr)
def test_a_usage_that_is_no_count_is_none(value: Any) -> None:
    usages: list[dict[str, Any]] = [
        {"prompt_tokens": value, "completion_tokens": 1},
        {"prompt_tokens": 7, "completion_tokens": value},
    ]
    events = [event({"choices": [{"text": "x", "finish_reason": "stop"}]})]
    (first, deltas), (second, _) = (fed(response(*events, event({"choices": [], "usage": u}))) for u in usages)
    assert texts_of(deltas) == ["x"]
    assert (first.prompt_tokens, first.output_tokens) == (None, 1)
    assert (second.prompt_tokens, second.output_tokens) == (None, None)
    assert first.finished


def test_what_has_another_type_is_ignored() -> None:
    odd = {"usage": [1], "metrics": [1], "choices": [{"text": "x", "finish_reason": {"a": 1}}]}
    reader, deltas = fed(response(event(odd), event("[DONE]")))
    assert texts_of(deltas) == ["x"]
    assert (reader.finish_reason, reader.output_tokens, reader.speculation) == (None, None, None)
    assert reader.finished


@pytest.mark.parametrize(
    ("data", "detail"),
    [
        (b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /v2\r\ncontent-length: 0\r\n\r\n", "HTTP 307"),
        (b"HTTP/1.1 302 Found\r\nconnection: close\r\n\r\nelsewhere", "HTTP 302: elsewhere"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 2\r\n\r\n[]", "HTTP 500: []"),
        (b"HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n" + b"[" * 100_000, "HTTP 500: " + "[" * 200),
    ],
    ids=["redirect", "redirect with a body", "a list", "nested deeply"],
)
def test_no_answer(data: bytes, detail: str) -> None:
    with pytest.raises(StreamError) as caught:
        fed(data, 10_000)[0].eof()
    assert (caught.value.kind, caught.value.detail) == ("http", detail)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (ANSWER[:-40], "cut"),
        (HEAD, "cut"),
        (b"", "cut"),
        (response(event(token("x", [1]))), "cut"),
        (response(event("{")), "malformed"),
        (response(event("[" * 100_000)), "malformed"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "malformed"),
        (response(event({"error": "boom"})), "engine"),
        (b'HTTP/1.1 404 Not Found\r\ncontent-length: 17\r\n\r\n{"error": "none"}', "http"),
        (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "http"),
    ],
    ids=[
        "tail lost",
        "no body",
        "nothing",
        "no finish",
        "no JSON",
        "nested deeply",
        "no HTTP",
        "error",
        "404",
        "empty 500",
    ],
)
def test_problems(data: bytes, kind: str) -> None:
    with pytest.raises(StreamError) as caught:
        fed(data)[0].eof()
    assert caught.value.kind == kind

"""Where a response ends, whatever the pieces in which it arrives; and never before."""

from __future__ import annotations

import pytest

from playground.load.framing import Framing, may_end

CHUNKED = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
SSE = b'12\r\ndata: {"a": 10}\r\n\r\n\r\n'
LENGTH = b"HTTP/1.1 400 Bad\r\nContent-Length: 5\r\n\r\n12345"


def ends_at(data: bytes, size: int) -> int | None:
    """After how many bytes the end is seen, read as the connection reads it."""
    framing, blocks = Framing(), []
    for start in range(0, len(data), size):
        block = data[start : start + size]
        blocks.append((0.0, block))
        if framing.chunked and not may_end(block):
            continue
        if framing.ended(blocks):
            return min(start + size, len(data))
    return None


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 40, 1000])
@pytest.mark.parametrize(
    "whole", [CHUNKED + SSE * 3 + b"0\r\n\r\n", CHUNKED + b"0\r\n\r\n", LENGTH], ids=["events", "empty", "length"]
)
def test_the_end_is_seen_with_the_last_byte(whole: bytes, size: int) -> None:
    assert ends_at(whole, size) == len(whole)
    assert ends_at(whole[:-1], size) is None


@pytest.mark.parametrize(
    ("head", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\n\r\n", False),
    ],
)
def test_whether_the_connection_can_be_kept(head: bytes, kept: bool) -> None:
    framing = Framing()
    framing.ended([(0.0, head)])
    assert framing.keep_alive is kept

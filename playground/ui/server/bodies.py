"""What is received of requests' bodies.

Gradio reads a body of JSON whole: 8 MB of empty lists are 400 MB of objects, and take the event loop seconds.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator

from starlette.requests import HTTPConnection
from starlette.types import Message, Receive

from .refused import Refused

MIB = 1024**2
# Bytes of all bodies that are held at a time, of which one address gets half. A small one always finds a place.
MOST_HELD, SMALL = 256 * MIB, MIB
# Texts, lists, objects and commas in a body; the page's largest has some hundred.
MOST_VALUES = 20_000
_VALUE = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[,\[{]', re.DOTALL)


def length_of(request: HTTPConnection, most: int) -> int:
    """The body's length in bytes. Raises Refused for a longer one than `most`, and where it is not told before."""
    if "transfer-encoding" in request.headers:
        raise Refused(411, "length")
    length = request.headers.get("content-length", "0")
    if not (length.isascii() and length.isdecimal() and len(length) < 20 and int(length) <= most):
        raise Refused(413, "too_large")
    return int(length)


class Bodies:
    """Those that are held now."""

    def __init__(self) -> None:
        self._held = 0
        self._by_address: Counter[str] = Counter()

    @contextlib.contextmanager
    def place(self, address: str, length: int) -> Iterator[None]:
        """A place for so many bytes. Raises Refused where there is none."""
        if length > SMALL and (
            self._held + length > MOST_HELD or self._by_address[address] + length > MOST_HELD // 2
        ):
            raise Refused(503, "busy", retry_after_s=60)
        self._held += length
        self._by_address[address] += length
        try:
            yield
        finally:
            self._held -= length
            self._by_address[address] -= length
            if not self._by_address[address]:
                del self._by_address[address]


async def read(receive: Receive) -> Receive | None:
    """Receive the whole body; what then gives it again, or None if the visitor has left. Raises Refused for one of
    too many values."""
    parts, more = list[bytes](), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    body = b"".join(parts)
    del parts
    if any(number >= MOST_VALUES for number, _ in enumerate(_VALUE.finditer(body))):
        raise Refused(413, "too_large")
    messages: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def again() -> Message:
        return next(messages, None) or await receive()

    return again

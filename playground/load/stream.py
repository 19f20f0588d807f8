"""Parses one HTTP response: byte blocks with arrival times in, token-bearing deltas out.

The same reader serves a race (fed as bytes arrive) and a measurement (fed after the request has ended): it uses
only the times that it gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import httptools

from .sse import EventParser, StreamError, lenient_json, malformed, payload

# A response with this status or a higher one, a redirect or an error, has no stream.
NO_ANSWER = 300
# Of an error's body no more is kept than a message can be in.
ERROR_BYTES = 65_536
# SQLite stores integers below this.
COUNTS_BELOW = 2**63

# One payload that bore tokens: when, how many (None where neither ids nor a running usage count them), text, ids.
# A bare tuple: there is one a chunk, and it goes into an event as it is.
Delta = tuple[float, int | None, str, list[int] | None]


class StreamReader:
    """Collects what a response says, fed with the time and the bytes of each block.

    `finished` turns true at `[DONE]`, or when a response that has begun to stream ends without it.
    """

    def __init__(self, event_bytes: float = inf, output_tokens: float = inf) -> None:
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.speculation: dict[str, Any] | None = None
        self.finished = False
        self._parser = httptools.HttpResponseParser(self)
        self._events = EventParser(event_bytes)
        self._most_tokens = output_tokens
        self._error_body = b""
        self._complete = False
        self._now = 0.0
        # Tokens in all deltas so far; None once one came uncounted.
        self._counted: int | None = 0
        # The same, where one that came uncounted is taken for one token.
        self._least_tokens = 0
        self._deltas: list[Delta] = []

    def feed(self, at: float, block: bytes) -> None:
        """Raises StreamError for an HTTP error, an error in the stream, or a payload that is not JSON."""
        self._now = at
        try:
            self._parser.feed_data(block)
        except httptools.HttpParserUpgrade as error:
            raise StreamError("http", self._http_error()) from error
        except httptools.HttpParserError as error:
            # A callback's exception arrives wrapped.
            if isinstance(error.__context__, StreamError):
                raise error.__context__ from None
            raise StreamError("malformed", str(error)) from error
        if self._complete and self._parser.get_status_code() >= NO_ANSWER:
            raise StreamError("http", self._http_error())

    def take(self) -> list[Delta]:
        """The deltas since the last call; after a problem, those before the fault."""
        deltas, self._deltas = self._deltas, []
        return deltas

    def eof(self) -> None:
        """The connection closed. Raises StreamError unless everything had arrived."""
        if not self._complete and self._parser.get_status_code() >= NO_ANSWER:
            # A body with neither length nor chunks ends with its connection.
            raise StreamError("http", self._http_error())
        if not self.finished:
            raise StreamError("cut")

    def release(self) -> None:
        """Release the parser after the last read. It and this object refer to each other: otherwise only the
        (switched off) garbage collection would free them."""
        del self._parser

    # Callbacks of the HTTP parser

    def on_body(self, body: bytes) -> None:
        if self._parser.get_status_code() >= NO_ANSWER:
            if len(self._error_body) < ERROR_BYTES:
                self._error_body += body
            return
        self._read(self._events.feed(body))

    def on_message_complete(self) -> None:
        self._complete = True
        if self._parser.get_status_code() < NO_ANSWER:
            self._read(self._events.end())
            self.finished = self.finished or self.finish_reason is not None

    def _read(self, events: Iterable[bytes]) -> None:
        for data in events:
            if self.finished:
                # What comes after the end is no part of the answer.
                return
            try:
                self._on_data(data)
            except (TypeError, AttributeError) as error:
                raise malformed(data) from error

    def _on_data(self, data: bytes) -> None:
        """Handle one payload. This takes most of a measurement's CPU time, so it makes few calls."""
        if (event := payload(data)) is None:
            self.finished = True
            return
        if "error" in event or event.get("object") == "error":
            raise StreamError("engine", _error_text(event))
        counted: int | None = None
        if isinstance(usage := event.get("usage"), dict):
            counted = as_count(usage.get("completion_tokens"))
            if counted is not None:
                if counted > self._most_tokens:
                    # Lists of a length that nothing but a number vouches for would follow.
                    raise self._too_many_tokens()
                self.output_tokens = counted
                prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
                if prompt_tokens != self.prompt_tokens:
                    self.prompt_tokens = as_count(prompt_tokens)
        if isinstance(metrics := event.get("metrics"), dict):
            self.speculation = metrics.get("speculative_decoding") or self.speculation
        for choice in event.get("choices") or ():
            self._on_choice(choice, counted)

    def _on_choice(self, choice: dict[str, Any], usage: int | None) -> None:
        if (reason := choice.get("finish_reason")) and isinstance(reason, str):
            self.finish_reason = reason
        text = choice.get("text") or ""
        if delta := choice.get("delta"):
            thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
            text = thought + (delta.get("content") or "") or text
        if type(text) is not str:
            raise StreamError("malformed", str(text)[:200])
        ids = choice.get("token_ids")
        if ids and not (type(ids) is list and all(as_count(item) is not None for item in ids)):
            ids = None
        tokens = len(ids) if ids else None
        if not ids and usage is not None and self._counted is not None:
            # After uncounted text, a usage is the final one, and tells nothing about this chunk.
            tokens = max(usage - self._counted, 0)
        # A chunk that only names the role, or only the finish reason, bears no token.
        if tokens or (tokens is None and text):
            self._least_tokens += tokens or 1
            if self._least_tokens > self._most_tokens:
                raise self._too_many_tokens()
            self._deltas.append((self._now, tokens, text, ids or None))
            self._counted = None if tokens is None or self._counted is None else self._counted + tokens

    def _too_many_tokens(self) -> StreamError:
        return StreamError("too_many_tokens", f"{self._most_tokens:,}")

    def _http_error(self) -> str:
        try:
            text = _error_text(lenient_json(self._error_body))
        except StreamError as problem:
            text = problem.detail
        return f"HTTP {self._parser.get_status_code()}" + (f": {text}" if text else "")


def as_count(value: object) -> int | None:
    """An endpoint's number of tokens; None where it can't be one."""
    return value if type(value) is int and 0 <= value < COUNTS_BELOW else None


def _error_text(payload: Any) -> str:
    error = payload.get("error", payload) if isinstance(payload, dict) else payload
    message = error.get("message", error) if isinstance(error, dict) else error
    return str(message)[:500]

"""Parses one HTTP response: byte blocks with arrival times in, token-bearing deltas out.

The same reader serves a race (fed as bytes arrive) and a measurement (fed after the request has ended): it uses
only the times that it gets.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

import httptools

from playground.domain.limits import MOST

from .body import Body
from .content import text_of
from .sse import StreamError, lenient_json, malformed, payload
from .words import excerpt, said_by, said_in

# A response has a stream from the first status on; from the second on it is a redirect or an error.
ANSWER = 200
NO_ANSWER = 300
# Of an error's body no more is kept than a message can be in.
ERROR_BYTES = 65_536
# SQLite stores integers below this.
COUNTS_BELOW = 2**63
# Ends of an answer that the server broke off.
BROKEN_OFF = ("error", "abort")

# One payload that bore tokens: when, how many (None where neither ids nor a running usage count them), text, ids.
# A bare tuple: there is one a chunk, and it goes into an event as it is.
Delta = tuple[float, int | None, str, list[int] | None]


class StreamReader:
    """Collects what a response says, fed with the time and the bytes of each block.

    `finished` turns true at `[DONE]`, or when a response that has begun to stream ends without it. An answer
    without any token is none: StreamError.
    """

    def __init__(self, event_bytes: float = inf, output_tokens: float = inf, response_bytes: int = MOST) -> None:
        self.finish_reason: str | None = None
        self.prompt_tokens: int | None = None
        self.output_tokens: int | None = None
        self.speculation: dict[str, Any] | None = None
        self.finished = False
        self._parser = httptools.HttpResponseParser(self)
        self._body = Body(event_bytes, response_bytes)
        self._sizes = event_bytes, response_bytes
        self._most_tokens = output_tokens
        self._error_body = b""
        # The first event that is not in the API's form.
        self._foreign: dict[str, Any] | None = None
        self._has_choices = False
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

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"content-encoding":
            self._body = Body(*self._sizes, value.decode("latin-1"))

    def on_body(self, body: bytes) -> None:
        if self._parser.get_status_code() >= NO_ANSWER:
            if len(self._error_body) < ERROR_BYTES:
                self._error_body += self._body.decoded(body)[:ERROR_BYTES]
            return
        self._read(self._body.feed(body))

    def on_message_complete(self) -> None:
        self._complete = True
        if ANSWER <= self._parser.get_status_code() < NO_ANSWER:
            self._read(self._body.end())
            # A JSON document that could be parsed is whole.
            if not self.finished and (
                self.finish_reason is not None or self._body.is_json or not self._least_tokens
            ):
                self._finish()

    def _finish(self) -> None:
        """The answer has ended as it should."""
        if not self._least_tokens:
            raise self._without_token()
        self.finished = True

    def _without_token(self) -> StreamError:
        """Why there is no token: no stream at all, a stream in another form, or an empty answer."""
        beginning = self._body.beginning.decode(errors="replace").strip()
        if self._has_choices or not beginning:
            return StreamError("no_token", f"finish_reason: {self.finish_reason}" if self.finish_reason else "")
        if self._foreign is not None:
            return StreamError("foreign", excerpt(self._foreign))
        if beginning.startswith(("data:", "event:", ":", "id:", "retry:")):
            return StreamError("no_token", "")
        return StreamError("page", said_in(beginning, 300))

    def _read(self, events: Iterable[bytes]) -> None:
        for data in events:
            if self.finished:
                # What comes after the end is no part of the answer.
                return
            try:
                self._on_data(data)
            except (TypeError, AttributeError) as error:
                raise StreamError("foreign", malformed(data).detail) from error

    def _on_data(self, data: bytes) -> None:
        """Handle one payload. This takes most of a measurement's CPU time, so it makes few calls."""
        try:
            event = payload(data)
        except StreamError:
            lines = data.split(b"\n")
            if len(lines) == 1:
                raise
            # Events without the empty line between them.
            for line in lines:
                self._on_data(line)
            return
        if event is None:
            self._finish()
        else:
            self._on_event(event)

    def _on_event(self, event: dict[str, Any]) -> None:
        error = event.get("error")
        if (error and _is_filled_in(error)) or event.get("object") == "error" or event.get("type") == "error":
            raise StreamError("engine", said_by(event))
        usage = event.get("usage")
        counted = self._on_usage(usage) if isinstance(usage, dict) else None
        if isinstance(metrics := event.get("metrics"), dict):
            self.speculation = metrics.get("speculative_decoding") or self.speculation
        if (choices := event.get("choices")) is not None:
            self._has_choices = True
            for choice in choices:
                # Further answers to the same prompt, which nobody asked for, would mix with the first.
                if not choice.get("index"):
                    self._on_choice(choice, counted)
        elif event.keys() - {"choices"} and self._foreign is None and usage is None:
            self._foreign = event

    def _on_usage(self, usage: dict[str, Any]) -> int | None:
        counted = as_count(usage.get("completion_tokens"))
        if counted is not None:
            if counted > self._most_tokens:
                # Lists of a length that nothing but a number vouches for would follow.
                raise self._too_many_tokens()
            self.output_tokens = counted
            prompt_tokens = usage.get("prompt_tokens", self.prompt_tokens)
            if prompt_tokens != self.prompt_tokens:
                self.prompt_tokens = as_count(prompt_tokens)
        return counted

    def _on_choice(self, choice: dict[str, Any], usage: int | None) -> None:
        text = choice.get("text") or ""
        # A whole answer has a message; some servers repeat it after its pieces.
        if delta := choice.get("delta") or (not self._least_tokens and choice.get("message")):
            text = text_of(delta) or text
        if type(text) is not str:
            raise StreamError("foreign", str(text)[:200])
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
        if (reason := choice.get("finish_reason")) or "error" in choice:
            self._on_finish(reason, choice.get("error"))

    def _on_finish(self, reason: object, error: object) -> None:
        if isinstance(reason, dict):
            # SGLang's own form.
            error = error or reason.get("message")
            reason = reason.get("type")
        if reason and isinstance(reason, str):
            self.finish_reason = reason
        if error:
            raise StreamError("engine", said_by(error))
        if reason in BROKEN_OFF:
            raise StreamError("engine", f"finish_reason: {reason}")

    def _too_many_tokens(self) -> StreamError:
        return StreamError("too_many_tokens", f"{self._most_tokens:,}")

    def _http_error(self) -> str:
        try:
            text = said_by(lenient_json(self._error_body))
        except StreamError:
            text = said_in(self._error_body.decode(errors="replace"), 200)
        return f"HTTP {self._parser.get_status_code()}" + (f": {text}" if text else "")


def _is_filled_in(error: object) -> bool:
    """Some servers send the form of an error with every chunk, and fill it in when there is one."""
    return not isinstance(error, dict) or any(error.values())


def as_count(value: object) -> int | None:
    """An endpoint's number of tokens; None where it can't be one."""
    return value if type(value) is int and 0 <= value < COUNTS_BELOW else None

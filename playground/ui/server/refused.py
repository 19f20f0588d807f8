"""A request that is not let in, and what is answered to it."""

from __future__ import annotations

import math

from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse

from playground.i18n import say
from playground.ui.shared.labels import locale_by


class Refused(Exception):
    """The status, and the sentence `gate.<reason>`."""

    def __init__(self, status: int, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s

    def answer(self, request: HTTPConnection) -> PlainTextResponse:
        """Closes the connection: more of the request may still be on its way."""
        sentence = say(f"gate.{self.reason}", locale_by(request.headers))
        headers = {"connection": "close"}
        if self.retry_after_s is not None:
            headers["retry-after"] = str(math.ceil(self.retry_after_s))
        return PlainTextResponse(f"{sentence}\n", self.status, headers)

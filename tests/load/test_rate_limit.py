"""A rate limit is waited for as the endpoint asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from playground.load.rate_limit import pause_of, seconds_of

REFUSED = "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 2\r\n"


@pytest.mark.parametrize(
    ("head", "earlier", "seconds"),
    [
        (REFUSED + "Retry-After: 7\r\n\r\n{}", 0, 7),
        (REFUSED + "retry-after:0.25\r\n\r\n{}", 3, 0.25),
        (REFUSED + "retry-after: soon\r\n\r\n{}", 1, 2),
        (REFUSED + "\r\nretry-after: 7", 0, 1),
        (REFUSED + "\r\n{}", 9, 30),
        (REFUSED + "retry-after: 0\r\n\r\n", 0, 0.05),
        (REFUSED + "retry-after: -5\r\n\r\n", 0, 0.05),
        (REFUSED + "retry-after: nan\r\n\r\n", 0, 1),
        (REFUSED + "retry-after: inf\r\n\r\n", 0, 1),
        ("HTTP/1.1 200 OK\r\nretry-after: 7\r\n\r\n", 0, None),
        ("HTTP/1.1 503 No\r\nretry-after: 7\r\n\r\n", 0, None),
        ("", 0, None),
    ],
)
def test_how_long(head: str, earlier: int, seconds: float | None) -> None:
    assert pause_of(head.encode(), earlier) == seconds


def test_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    assert 50 < (seconds_of(later) or 0) < 61
    assert seconds_of("Sun, 06 Nov 1994 08:49:37 GMT") == 0.05
    assert seconds_of("Sun, 06 Nov 99999 08:49:37 GMT") is None

"""How long an endpoint's rate limit asks to wait (RFC 6585, 429; RFC 9110, Retry-After)."""

from __future__ import annotations

import re
import time
from email.utils import parsedate_to_datetime
from math import isfinite

STATUS = re.compile(rb"HTTP/1\.[01] 429 ")
RETRY_AFTER = re.compile(rb"\r\nretry-after:[ \t]*([^\r\n]+)", re.IGNORECASE)
# Without a word of how long, doubled each time up to the longest.
FIRST_S, LONGEST_S = 1.0, 30.0
# An endpoint that asks for no time at all would otherwise be asked without end.
LEAST_S = 0.05


def pause_of(head: bytes, earlier: int) -> float | None:
    """Seconds to wait, by the beginning of an answer; `earlier`: how often it was so before. None for any other
    answer."""
    if not STATUS.match(head):
        return None
    match = RETRY_AFTER.search(head.partition(b"\r\n\r\n")[0])
    seconds = None if match is None else seconds_of(match[1].decode("latin-1").strip())
    return min(FIRST_S * 2**earlier, LONGEST_S) if seconds is None else seconds


def seconds_of(text: str) -> float | None:
    """What a Retry-After header says, as seconds from now: a number, or a date. None for anything else."""
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(LEAST_S, seconds) if isfinite(seconds) else None

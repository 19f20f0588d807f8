"""Text as Python can keep and send it."""

from __future__ import annotations

import re

# Half an emoji: JSON can escape it, and UTF-8 has no bytes for it.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def mended(text: str) -> str:
    """U+FFFD in place of each half emoji."""
    return LONE_SURROGATE.sub("\ufffd", text)

"""Text that UTF-8 can encode."""

from __future__ import annotations

import re

# Half an emoji: JSON can escape it, but UTF-8 can't encode it.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def mended(text: str) -> str:
    """The text with U+FFFD in place of each half emoji."""
    return LONE_SURROGATE.sub("\ufffd", text)

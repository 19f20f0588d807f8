"""The text of each token in a chunk of several, by the target's own tokenizer."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from .files import content

logger = logging.getLogger(__name__)


class TokenText:
    """Splits a chunk's text into its tokens' texts."""

    def __init__(self, tokenizer: Tokenizer | None) -> None:
        self._tokenizer = tokenizer

    def split(self, text: str, token_ids: Sequence[int] | None) -> list[str] | None:
        """One text a token, or None where the tokens' texts don't add up to the chunk's.

        They don't for a character spread over several tokens, or after a stop string was cut off.
        """
        if self._tokenizer is None or token_ids is None:
            return None
        pieces = [self._tokenizer.decode([token_id], skip_special_tokens=True) for token_id in token_ids]
        return pieces if "".join(pieces) == text else None


@lru_cache(maxsize=4)
def tokenizer(folder: Path | None) -> Tokenizer | None:
    """The tokenizer of a model folder; None where it has no tokenizer.json that can be read."""
    file = folder / "tokenizer.json" if folder else None
    if file is None or not file.is_file():
        return None
    try:
        return Tokenizer.from_buffer(content(file))
    except Exception as error:  # noqa: BLE001
        # The library's errors have no other kind. The engine says what is wrong with its own model.
        logger.warning("%s can't be read: %s", file, error)
        return None


def token_text(folder: Path | None) -> TokenText:
    """The splitter for a model folder; without a tokenizer it splits nothing."""
    return TokenText(tokenizer(folder))

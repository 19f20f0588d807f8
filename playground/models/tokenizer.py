"""The text of each token in a chunk of several, by the target's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from tokenizers import Tokenizer


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
    """The tokenizer of a model folder; None where it has no tokenizer.json."""
    file = folder / "tokenizer.json" if folder else None
    return Tokenizer.from_file(str(file)) if file is not None and file.is_file() else None


def token_text(folder: Path | None) -> TokenText:
    """The splitter for a model folder; without a tokenizer it splits nothing."""
    return TokenText(tokenizer(folder))

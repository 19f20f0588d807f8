"""Rows that this version can't read: written by a newer one, or damaged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError

from playground.domain.errors import WorkFailed

LONGEST_DETAIL = 200


@contextmanager
def readable(saved_id: str) -> Iterator[None]:
    """Raises WorkFailed with the reason if what is read inside the block, of this run or sweep, can't be
    understood."""
    try:
        yield
    except (
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        ArithmeticError,
        AssertionError,
        RecursionError,
    ) as error:
        raise WorkFailed("history.unreadable", id=saved_id, detail=_detail(error)) from error


def _detail(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        text = f"{error.title} {'.'.join(map(str, first['loc']))}: {first['msg']}"
    else:
        text = f"{type(error).__name__}: {error}"
    return text[:LONGEST_DETAIL]

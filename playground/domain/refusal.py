"""What a model's own validators raise."""

from __future__ import annotations

from typing import LiteralString

from pydantic_core import PydanticCustomError


def refused(message_id: LiteralString, field: str | None, **params: object) -> PydanticCustomError:
    """A message id of `text.py` with its parameters, and the field that the person should look at.

    None: it is the value itself that a type's own validator refuses.
    """
    return PydanticCustomError(message_id, message_id, {**params, "field": field})

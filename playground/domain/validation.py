"""Validates values: an InvalidInput names the field, the value, and what would be accepted."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Literal, LiteralString, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from .errors import InvalidInput
from .message import Message, Where
from .url import without_secrets

ModelT = TypeVar("ModelT", bound=BaseModel)

# Longer values are shown cut off.
SHOWN = 60
# pydantic's kind of error -> what would have been accepted, and where its limit stands in the error's context.
ACCEPTED: dict[str, tuple[str, str | None]] = {
    "greater_than": ("accepted.above", "gt"),
    "greater_than_equal": ("accepted.at_least", "ge"),
    "less_than": ("accepted.below", "lt"),
    "less_than_equal": ("accepted.at_most", "le"),
    "int_parsing": ("accepted.whole_number", None),
    "int_type": ("accepted.whole_number", None),
    "int_from_float": ("accepted.whole_number", None),
    "int_parsing_size": ("accepted.shorter_number", None),
    "float_parsing": ("accepted.number", None),
    "float_type": ("accepted.number", None),
    "finite_number": ("accepted.number", None),
    "bool_parsing": ("accepted.true_or_false", None),
    "bool_type": ("accepted.true_or_false", None),
    "string_type": ("accepted.text", None),
    "string_unicode": ("accepted.text", None),
    "string_too_short": ("accepted.not_empty", None),
    "string_too_long": ("accepted.shorter_text", "max_length"),
    "string_pattern_mismatch": ("accepted.plain_text", None),
    "literal_error": ("accepted.one_of", "expected"),
    "union_tag_invalid": ("accepted.one_of", "expected_tags"),
    "tuple_type": ("accepted.list", None),
    "list_type": ("accepted.list", None),
    "too_short": ("accepted.more_entries", "min_length"),
    "too_long": ("accepted.fewer_entries", "max_length"),
    "dict_type": ("accepted.table", None),
    "model_type": ("accepted.table", None),
    "model_attributes_type": ("accepted.table", None),
}


def validate(model: type[ModelT], values: Mapping[str, Any], where: Where) -> ModelT:
    """Validate `values` as a `model`. Raises InvalidInput, whose `key` is the dotted field; errors in other fields
    are its `further` ones."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        refusal = _refusal(model, _first(error), where)
        others = {other.params["key"]: other for other in refusals(model, values, lambda _: where)}
        refusal.further = tuple(other for key, other in others.items() if key != refusal.params["key"])
        # pydantic's own error is dropped: it contains an endpoint's address, in which a user may have put a key.
        raise refusal from None


def refusals(
    model: type[BaseModel], values: Mapping[str, Any], where_of: Callable[[Sequence[int | str]], Where]
) -> list[InvalidInput]:
    """All errors of `values` as a `model`, in the order of its fields. `where_of` a field's path: its place."""
    try:
        model.model_validate(values)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        members = [_member(model, details["loc"]) for details in errors]
        # Of a union's members the one that understood most of the value, as for a single error.
        deepest = sorted(range(len(errors)), key=lambda index: -len(errors[index]["loc"]))
        chosen = {members[index][:-1]: members[index] for index in reversed(deepest)}
        kept = [details for details, member in zip(errors, members, strict=True) if chosen[member[:-1]] == member]
        return [_refusal(model, details, where_of(_walk(model, details["loc"])[0])) for details in kept]
    return []


def _member(model: type[BaseModel], place: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """An error's place as far as the first union member that was tried; all of it, where there is no union."""
    for end in range(1, len(place) + 1):
        if len(_walk(model, place[:end])[0]) < end:
            return place[:end]
    return (*place, "")


def refused(message_id: LiteralString, field: str | None, **params: object) -> PydanticCustomError:
    """The error that a model's validator raises: a message's id and parameters, and the field concerned.

    `field` is None where a type's validator refuses the value itself.
    """
    return PydanticCustomError(message_id, message_id, {**params, "field": field})


def reason(error: ValidationError) -> Message:
    """What would be accepted in place of the first invalid value. The caller knows which value that is."""
    first = _first(error)
    return _accepted(first["type"], first.get("ctx", {}))


def _first(error: ValidationError) -> ErrorDetails:
    """The deepest error: of a union's members, that of the one that understood most of the value."""
    return max(error.errors(include_url=False), key=lambda details: len(details["loc"]))


def _refusal(model: type[BaseModel], details: ErrorDetails, where: Where) -> InvalidInput:
    path, _ = _walk(model, details["loc"])
    context = dict(details.get("ctx", {}))
    kind = details["type"]
    if field := context.get("field"):
        key = _dotted([*path, field])
        return InvalidInput("settings.invalid", where=where, key=key, detail=_accepted(kind, context))
    if kind.startswith("union_tag"):
        path = [*path, context["discriminator"].strip("'")]
        kind = "missing" if kind == "union_tag_not_found" else kind
    key = _dotted(path)
    if kind == "extra_forbidden":
        _, inner = _walk(model, details["loc"][:-1])
        nearest = nearest_of(str(path[-1]), _keys(inner))
        return InvalidInput("settings.unknown_key", where=where, key=key, nearest=nearest)
    if kind == "missing" or details["input"] is None:
        # A form sends None for an empty field.
        return InvalidInput("settings.missing_key", where=where, key=key)
    if path[-1:] == ["base_url"]:
        return InvalidInput("endpoint.bad_url", where=where, key=key, url=without_secrets(str(details["input"])))
    value = context.get("tag", details["input"])
    return InvalidInput(
        "settings.bad_value", where=where, key=key, value=_shortened(value), detail=_accepted(kind, context)
    )


def _accepted(kind: str, context: Mapping[str, Any]) -> Message:
    if "field" in context:
        return Message(kind, {name: value for name, value in context.items() if name != "field"})
    message_id, limit = ACCEPTED.get(kind, ("accepted.other", None))
    if limit is None:
        return Message(message_id)
    value = context[limit]
    return Message(message_id, {"limit": value.replace(" or ", ", ") if isinstance(value, str) else value})


def _shortened(value: object) -> object:
    """The value, cut to a length that fits into a sentence."""
    if isinstance(value, (dict, BaseModel)):
        return "{…}"
    try:
        text = str(value)
    except ValueError:
        # Python refuses to print a number of more than some thousand digits.
        return "…"
    return value if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _dotted(path: list[int | str]) -> str:
    return ".".join(str(part) for part in path) or "-"


def nearest_of(name: str, candidates: list[str]) -> str:
    """The candidate that looks most like `name`; all of them, if none does."""
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.4)
    return close[0] if close else ", ".join(candidates)


def typo_of(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that differs from `name` by a letter or two, as after a typo; None without one."""
    close = difflib.get_close_matches(name, [*candidates], n=1, cutoff=0.87)
    return close[0] if close else None


def choices(model: type[BaseModel], field: str) -> list[str] | None:
    """The literal values a field accepts, or None if it is free."""
    inner = _options(model.model_fields[field].annotation)[0]
    return [str(value) for value in get_args(inner)] if get_origin(inner) is Literal else None


def _walk(model: type[BaseModel], place: tuple[int | str, ...]) -> tuple[list[int | str], list[Any]]:
    """The dotted path of an error's place, and what types its last part may have.

    pydantic's places also name the union member that was tried, which the user did not type.
    """
    path: list[int | str] = []
    options: list[Any] = [model]
    for part in place:
        if len(options) > 1:
            options = [option for option in options if _is_called(option, part)]
            continue
        path.append(part)
        options = _below(options[0], part) if options else []
    return path, options


def _below(current: Any, part: int | str) -> list[Any]:
    if isinstance(part, int):
        return _options(next(iter(get_args(current)), None))
    fields = current.model_fields if isinstance(current, type) and issubclass(current, BaseModel) else {}
    return next((_options(field.annotation) for name, field in fields.items() if part in (name, field.alias)), [])


def _is_called(option: Any, tag: int | str) -> bool:
    if not (isinstance(option, type) and issubclass(option, BaseModel)):
        return False
    literals = [choices(option, name) or [] for name in option.model_fields]
    return tag == option.__name__ or any(tag in values for values in literals)


def _options(annotation: Any) -> list[Any]:
    """The members of a union without None; of anything else, itself."""
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [option for arg in get_args(annotation) if arg is not type(None) for option in _options(arg)]
    return [annotation]


def _keys(options: list[Any]) -> list[str]:
    return [field.alias or name for model in options for name, field in model.model_fields.items()]

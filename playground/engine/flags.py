"""Flags of an engine's command line, read as vLLM's own parser does: whether a runtime has them, and whether a
visitor may set them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.validation import nearest_of
from playground.domain.vllm_cli.old_names import replacement
from playground.domain.vllm_cli.owned import KEYS, why_no_speculation, why_owned

from .runtime import Runtime

NUMBER = re.compile(r"-\d+|-\d*\.\d+")
# A flag, the keys that lead into its JSON, and its value.
PARTS = re.compile(r"([^=.]*)(?:\.([^=]*))?(?:=(.*))?", re.DOTALL)


def options(words: Sequence[str]) -> Iterator[list[str]]:
    """Each option with the words after it. What stands before the first one comes alone."""
    option: list[str] = []
    for word in words:
        if word.startswith("-") and word != "-" and not NUMBER.fullmatch(word):
            if option:
                yield option
            option = []
        option.append(word)
    if option:
        yield option


def joined(option: Sequence[str]) -> Sequence[str]:
    """The option as `--flag=value`, which no parser takes for two options. Several values stay as they are."""
    return (f"{option[0]}={option[1]}",) if len(option) == 2 else option


def check_known(runtime: Runtime, flag: str, key: str, where: Mapping[str, str]) -> None:
    """Raises InvalidInput for a flag that the runtime lacks, with what does its job there. Beginnings of a flag,
    which argparse takes for the flag, are not known."""
    if runtime.knows(flag):
        return
    if (instead := replacement(flag)) is None:
        nearest = nearest_of(flag, sorted(runtime.flags))
        instead = Message("settings.flag_nearest", {"nearest": nearest})
    raise InvalidInput("settings.flag_missing", **where, key=key, flag=flag, instead=instead)


def check_extra(words: Sequence[str], runtime: Runtime, where: Mapping[str, str], *, speculates: bool) -> None:
    """Raises InvalidInput for a word that is no flag and no flag's value, for a flag that the runtime lacks, and
    for one that only the playground may set. `speculates`: the settings have a speculation of their own."""
    for first, *values in options(words):
        flag, keys, value = _parts(first)
        if not first.startswith("-"):
            raise InvalidInput("settings.flag_stray", **where, key="extra_flags", word=first[:200])
        check_known(runtime, flag, "extra_flags", where)
        name = runtime.name_of(flag)
        if len(values) > (0 if value is not None else 1) and name not in runtime.lists:
            raise InvalidInput("settings.flag_stray", **where, key="extra_flags", word=values[-1][:200])
        if any(keys) and value is None and not values:
            # vLLM would take the next flag for the value.
            raise InvalidInput("settings.flag_stray", **where, key="extra_flags", word=first[:200])
        why = why_owned(name)
        if name == "speculative_config" and not speculates and values and not any(keys):
            why = why_no_speculation(values[0])
        if why is None and name in KEYS:
            why = _why_inside(KEYS[name], keys, value if value is not None else "".join(values))
        if why is not None:
            raise InvalidInput("settings.flag_owned", **where, key="extra_flags", flag=first[:200], why=why)


def _parts(word: str) -> tuple[str, list[str], str | None]:
    """The flag as vLLM spells it, the keys after dots, and the value if it is in the same word."""
    match = PARTS.fullmatch(word)
    assert match is not None
    flag, keys, value = match.groups()
    if re.fullmatch(r"-O\d*", flag):
        return "--optimization-level", [], value
    # vLLM takes underscores for dashes; a plus after a key appends to a list.
    dashed = "--" + flag[2:].replace("_", "-") if flag.startswith("--") else flag
    return dashed, (keys or "").rstrip("+").split("."), value


def _why_inside(owned: Mapping[str, str], keys: Sequence[str], text: str) -> Message | None:
    """Why no extra flag may set one of the keys that lead to this value, or that are in it; None if it may."""
    try:
        inner = {*keys, *_keys_in(text)}
    except ValueError:
        return Message("owned.not_json")
    return next((Message(reason) for key, reason in owned.items() if key in inner), None)


def _keys_in(text: str) -> Iterator[str]:
    """All keys of a JSON value, at every depth; none of a plain word. Raises ValueError for what may be an object
    all the same: vLLM also takes numbers like 1k."""
    try:
        waiting: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        if "{" in text:
            raise ValueError("not JSON") from None
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            yield from value
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value

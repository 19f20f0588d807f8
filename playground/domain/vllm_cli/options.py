"""vLLM's words -> its options, as its own parser reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from playground.domain.errors import InvalidInput

from . import option_table
from .notes import Notes
from .shell.words import Word, unresolved

# Another spelling of an option.
ALIASES = {"device-memory-utilization": "gpu-memory-utilization"}
TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Option:
    """`name`: in full, with underscores; `inner`: the keys after dots. `value`: text, True or False for a switch,
    a list of texts, or what a Python call gave. `typed`: the words as they were written; none for a Python call.
    """

    name: str
    value: Any
    inner: str = ""
    typed: tuple[str, ...] = ()
    acted_on: str | None = None
    resolved: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return self.typed[0].partition("=")[0] if self.typed else self.name


def bare(flag: str) -> str:
    """A flag as a key: `--max-num-seqs` is `max_num_seqs`."""
    return flag.lstrip("-").replace("-", "_")


def is_option(word: str) -> bool:
    """Whether it is a flag; a negative number is none, nor is a text with blanks."""
    return re.match(r"--?[A-Za-z]", word) is not None and not re.search(r"\s", word.partition("=")[0])


def grouped(words: Sequence[str]) -> Iterator[list[str]]:
    """Each option of already split words with its values; what comes before the first option comes alone."""
    waiting = list(words)
    while waiting:
        first, *rest = waiting
        takes = is_option(first) and "=" not in first and takes_value(bare(first))
        values = list(takewhile(lambda word: not is_option(word), rest)) if takes else []
        yield [first, *values]
        waiting = rest[len(values) :]


def value_of(group: Sequence[str]) -> tuple[str, Any]:
    """An option's key and value: True for a switch, a list where several values follow."""
    name, equals, value = group[0].partition("=")
    if equals:
        return bare(name), value
    rest = list(group[1:])
    return bare(name), rest[0] if len(rest) == 1 else rest or True


def split(words: Sequence[Word], notes: Notes, former: Container[str] = ()) -> Iterator[Option]:
    """The options; what belongs to none is the model. `former`: names that are no longer vLLM's, with underscores.

    Raises InvalidInput for a beginning of several names, and for a word that belongs nowhere.
    """
    at, ended, models = 0, False, list[Word]()
    while at < len(words):
        word = words[at]
        at += 1
        if not word.text.strip() and word.acted_on is None:
            continue
        if word.text == "--" and not ended:
            ended = True
        elif ended or not is_option(word.text):
            models.append(word)
            if len(models) > 1 or word.acted_on:
                raise _stray(words, at - 1)
            yield Option("model", word.text, typed=(word.text,), resolved=word.resolved)
        else:
            option, at = _read(words, at, notes, former)
            yield option


def of_pair(key: str, value: Any, notes: Notes) -> Option:
    """The option of a --config file's key, which vLLM's parser reads like one that is typed."""
    name, inner, _ = _in_full(f"--{key}", notes, ())
    if name.startswith("no_") and name[3:].replace("_", "-") in option_table.SWITCHES:
        return Option(name[3:], value is False, inner)
    return Option(name, value, inner)


def _read(words: Sequence[Word], at: int, notes: Notes, former: Container[str]) -> tuple[Option, int]:
    """The option whose flag stands before `at`, and the place after its values."""
    word = words[at - 1]
    typed, equals, text = word.text.partition("=")
    name, inner, whole = _in_full(typed, notes, former)
    # A runtime knows no beginnings.
    word = replace(word, text=f"{whole}{equals}{text}")
    if equals:
        values = [Word(text, word.acted_on, word.resolved)]
    else:
        values = list(_values(name, inner, words, at))
        at += len(values)
    return _option(name, inner, word, values, equals, notes), at


def _in_full(typed: str, notes: Notes, former: Container[str]) -> tuple[str, str, str]:
    """The whole name behind what was typed, the keys after its dots, and the flag without abbreviation."""
    if re.fullmatch(r"-O(\d|[a-z]+)?", typed):
        return "optimization_level", "", typed
    dashes = "--" if typed.startswith("--") else "-"
    first, _, inner = typed.removeprefix(dashes).partition(".")
    name = first.replace("_", "-")
    if dashes == "-":
        if first in option_table.SHORT:
            return bare(option_table.SHORT[first]), inner, typed
        longer = sorted({option_table.SHORT[short] for short in option_table.SHORT if short.startswith(first)})
    else:
        negated = name.removeprefix("no-") in option_table.SWITCHES
        if name in option_table.EVERY or negated or bare(first) in former:
            return bare(name), inner, typed
        if name in ALIASES:
            return bare(ALIASES[name]), inner, typed
        candidates = option_table.EVERY | {f"no-{switch}" for switch in option_table.SWITCHES}
        longer = sorted(candidate for candidate in candidates if candidate.startswith(name))
    if len(longer) > 1:
        raise InvalidInput("paste.ambiguous", name=typed, candidates=", ".join(f"--{c}" for c in longer[:6]))
    if longer:
        notes.say("paste.beginning", name=typed, whole=f"--{longer[0]}")
        return bare(longer[0]), inner, f"--{longer[0]}" + (f".{inner}" if inner else "")
    return bare(name), inner, typed


def _values(name: str, inner: str, words: Sequence[Word], at: int) -> Iterator[Word]:
    """The words after an option that are its values."""
    dashed = name.replace("_", "-")
    most = 1
    if not inner and dashed in option_table.LISTS:
        most = len(words)
    elif not inner and not takes_value(name):
        # Truth values are a common slip; vLLM refuses them.
        following = words[at].text.lower() if at < len(words) else ""
        most = 1 if following in TRUTH else 0
    for word in words[at : at + most]:
        if is_option(word.text) or word.text == "--":
            break
        yield word


def takes_value(name: str) -> bool:
    """Whether values follow an option. Of one that is not vLLM's, by how its name begins."""
    dashed = name.replace("_", "-")
    if dashed in option_table.SWITCHES or dashed in option_table.FLAGS:
        return False
    if dashed in option_table.VALUES or dashed in option_table.LISTS:
        return True
    return not dashed.startswith(("enable-", "disable-", "no-", "use-", "trust-"))


def _option(name: str, inner: str, word: Word, values: list[Word], equals: str, notes: Notes) -> Option:
    dashed = name.replace("_", "-")
    texts = [value.text for value in values]
    value: Any = texts[0] if len(texts) == 1 else texts or True
    if not inner and dashed in option_table.LISTS and texts and not equals:
        value = texts
    if name == "optimization_level" and not texts:
        value = re.sub(r"^-O", "", word.text)
    elif not inner and not takes_value(name) and texts:
        if texts[0].lower() not in TRUTH:
            raise InvalidInput("paste.takes_none", name=word.text.partition("=")[0], value=texts[0][:60])
        value = TRUTH[texts[0].lower()]
        notes.say("paste.truth_value", name=word.text.partition("=")[0], value=texts[0])
    if name.startswith("no_") and name[3:].replace("_", "-") in option_table.SWITCHES and not inner:
        name, value = name[3:], value is False
    acted_on = next((piece.acted_on for piece in [word, *values] if piece.acted_on), None)
    resolved = tuple(pair for piece in ([word] if equals else values) for pair in piece.resolved)
    typed = (word.text, *([] if equals else texts))
    return Option(name, value, inner, typed, acted_on, resolved)


def _stray(words: Sequence[Word], at: int) -> InvalidInput:
    """The refusal of a word that belongs to no option."""
    word = words[at]
    if word.acted_on:
        return unresolved(word.acted_on)
    before = words[at - 1].text if at else ""
    flag = words[at - 2].text if at > 1 else ""
    if before.startswith("{") and is_option(flag) and not _is_json(before):
        return InvalidInput("paste.json_quotes", name=flag, text=f"{before} {word.text}"[:60])
    return InvalidInput("paste.stray", word=word.text[:60])


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

"""Prompts: built-in sets, users' files, and synthetic prompts of a given length.

A file is .txt (one prompt a line), .jsonl (an object a line), .csv (a column named prompt) or .json (a list of
objects). An object has `prompt`, `messages` as in the OpenAI API (also inside `body`, as in its batch files), or
`conversations` as in ShareGPT; `max_tokens` is optional, other keys are ignored.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from pathlib import Path
from random import Random
from typing import Any

from tokenizers import Tokenizer

from playground.domain.errors import InvalidInput
from playground.domain.limit_checks import check_prompts
from playground.domain.limits import DEFAULTS, Limits
from playground.domain.message import Message
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.workload import ChatMessage, Conversation, Prompt, Workload
from playground.domain.unicode import mended
from playground.domain.validation import nearest_of

FOLDER = Path(__file__).parents[1] / "presets" / "prompts"
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
SHAREGPT_HUMANS = ("human", "user")
# A number with more digits may not fit into 64 bits.
MOST_DIGITS = 18


def names() -> list[str]:
    """All built-in sets."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def load(name_or_path: str, limits: Limits = DEFAULTS) -> tuple[Prompt, ...]:
    """A built-in set by name, or a file by path. Raises InvalidInput, which names file, place and remedy."""
    if name_or_path in names():
        return read(FOLDER / f"{name_or_path}.jsonl", limits)
    path = Path(name_or_path)
    if not path.suffix and not path.exists():
        raise InvalidInput("prompts.no_such_set", name=name_or_path, nearest=nearest_of(name_or_path, names()))
    return read(path, limits)


def of_measurement(
    measurement: Measurement,
    workload: Workload,
    seed: int,
    tokenizer: Tokenizer | None,
    limits: Limits = DEFAULTS,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Prompt, ...]:
    """The prompts of a measurement. `tokenizer` is the first side's. Raises InvalidInput if synthetic prompts lack
    it, and for what is above the limits. Synthetic ones are left out once `stopped`."""
    match measurement.prompts:
        case None:
            return (Prompt(conversation=workload.conversation),)
        case SyntheticPrompts(input_tokens=tokens, count=count):
            if tokenizer is None:
                raise InvalidInput("prompts.no_tokenizer")
            return synthetic(tokenizer, tokens, count, seed, stopped=stopped)
        case name:
            return load(name, limits)


def read(path: Path, limits: Limits = DEFAULTS) -> tuple[Prompt, ...]:
    """The prompts of a file in order, at least one. Raises InvalidInput for what is above the limits."""
    reader = {".txt": _lines, ".jsonl": _json_lines, ".csv": _table, ".json": _json_list}.get(path.suffix.lower())
    if reader is None:
        raise InvalidInput("prompts.kind", file=path.name)
    try:
        with path.open("rb") as file:
            content = file.read(limits.upload_bytes + 1)
        limits.check("upload_bytes", len(content))
        # Spreadsheets begin their files with a byte order mark.
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise InvalidInput("prompts.unreadable", file=path.name, detail=error.strerror) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InvalidInput("prompts.not_utf8", file=path.name, place=_line(line)) from error
    except ValueError as error:
        # Python refuses the name: it contains a null byte or half an emoji.
        raise InvalidInput("prompts.unreadable", file=mended(path.name), detail=str(error)) from error
    prompts = tuple(islice(reader(text, path.name), limits.prompts + 1))
    if len(prompts) > limits.prompts:
        raise InvalidInput("prompts.too_many", file=path.name, limit=limits.prompts)
    check_prompts(limits, prompts)
    if not prompts:
        raise InvalidInput("prompts.none", file=path.name)
    return prompts


def _line(number: int) -> Message:
    return Message("prompts.line", {"number": number})


def _of_text(text: str, max_tokens: int | None = None) -> Prompt:
    return Prompt(conversation=(ChatMessage(role="user", content=mended(text)),), max_tokens=max_tokens)


def _split(text: str) -> Iterator[str]:
    """The text's lines, one at a time. splitlines would also break at characters that a prompt may contain."""
    return (line.removesuffix("\n") for line in io.StringIO(text, newline="\n"))


def _lines(text: str, file: str) -> Iterator[Prompt]:
    yield from (_of_text(line.strip()) for line in _split(text) if line.strip())


def _json_lines(text: str, file: str) -> Iterator[Prompt]:
    for number, line in enumerate(_split(text), 1):
        if line.strip():
            yield from _entry(_parsed(line, file, number), file, _line(number))


def _json_list(text: str, file: str) -> Iterator[Prompt]:
    document = _parsed(text, file, 1)
    if not isinstance(document, list):
        raise InvalidInput("prompts.not_a_list", file=file)
    for number, entry in enumerate(document, 1):
        yield from _entry(entry, file, Message("prompts.entry", {"number": number}))


def _parsed(text: str, file: str, first_line: int) -> Any:
    try:
        return json.loads(text, parse_int=_number)
    except json.JSONDecodeError as error:
        place = _line(first_line + error.lineno - 1)
        raise InvalidInput("prompts.not_json", file=file, place=place, detail=error.msg) from error
    except RecursionError as error:
        raise InvalidInput("prompts.bad_entry", file=file, place=_line(first_line)) from error


def _number(digits: str) -> int | float:
    """An int, or a float for a very long number: Python refuses to parse thousands of digits as an int."""
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


def _table(text: str, file: str) -> Iterator[Prompt]:
    rows = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [(name or "").strip() for name in rows.fieldnames or ()]
        if "prompt" not in columns:
            raise InvalidInput("prompts.no_column", file=file, columns=", ".join(columns) or "-")
        rows.fieldnames = columns
        for row in rows:
            # An empty cell means no limit.
            cell = (row.get("max_tokens") or "").strip() or None
            limit = _number(cell) if cell and cell.isascii() and cell.isdecimal() else cell
            yield from _entry({"prompt": row["prompt"], "max_tokens": limit}, file, _line(rows.line_num))
    except csv.Error as error:
        raise InvalidInput("prompts.not_csv", file=file, place=_line(rows.line_num), detail=str(error)) from error


def _entry(entry: object, file: str, place: Message) -> Iterator[Prompt]:
    """The entry's prompt; nothing for a ShareGPT conversation without a human turn (its dumps have many)."""
    if isinstance(entry, dict) and isinstance(entry.get("body"), dict):
        entry = entry["body"]
    if not isinstance(entry, dict):
        raise InvalidInput("prompts.bad_entry", file=file, place=place)
    limit = entry.get("max_tokens", entry.get("max_completion_tokens"))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInput("prompts.bad_max_tokens", file=file, place=place, value=limit)
    if "messages" in entry:
        conversation = _messages(entry["messages"])
        if conversation is None:
            raise InvalidInput("prompts.bad_messages", file=file, place=place)
        yield Prompt(conversation=conversation, max_tokens=limit)
    elif "conversations" in entry:
        first = _first_human(entry["conversations"])
        if first is not None:
            yield _of_text(first, limit)
    elif isinstance(entry.get("prompt"), str) and entry["prompt"].strip():
        yield _of_text(entry["prompt"], limit)
    else:
        raise InvalidInput("prompts.bad_entry", file=file, place=place)


def _messages(messages: object) -> Conversation | None:
    """The conversation; None unless every message has a known role and text, and the last is the user's."""
    if not isinstance(messages, list):
        return None
    conversation = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            return None
        role, content = ROLES.get(message["role"]), _content(message.get("content"))
        if role is None or content is None:
            return None
        conversation.append(ChatMessage.model_validate({"role": role, "content": mended(content)}))
    return (
        tuple(conversation)
        if conversation and conversation[-1].role == "user" and conversation[-1].content.strip()
        else None
    )


def _content(content: object) -> str | None:
    """A string, or a list of text parts; None for anything else (images, tool calls)."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not content:
        return None
    texts = [
        part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
    ]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if len(known) == len(texts) else None


def _first_human(turns: object) -> str | None:
    """The first human turn, which benchmarks on ShareGPT send: later turns answer another model."""
    for turn in turns if isinstance(turns, list) else ():
        if isinstance(turn, Mapping) and turn.get("from") in SHAREGPT_HUMANS:
            value = turn.get("value")
            return value if isinstance(value, str) and value.strip() else None
    return None


def synthetic(
    tokenizer: Tokenizer,
    tokens: int,
    count: int,
    seed: int,
    max_tokens: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Prompt, ...]:
    """`count` prompts of shuffled plain words, each `tokens` long by this tokenizer.

    The chat template's own tokens come on top. The same seed gives the same prompts; they share no prefix beyond
    chance. Where no text has exactly that length, a shorter one is used. Once `stopped`, the rest is left out.
    """
    if tokenizer.truncation or tokenizer.padding:
        # Some models' files set these, which would hide the true length. The caller's tokenizer stays unchanged.
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    random = Random(seed)
    words = sorted({word for prompt in load("chat") for word in prompt.conversation[-1].content.split()})
    wanted = takewhile(lambda _: not stopped(), range(count))
    return tuple(_of_text(_of_length(tokenizer, tokens, words, random, stopped), max_tokens) for _ in wanted)


def _of_length(
    tokenizer: Tokenizer, tokens: int, words: list[str], random: Random, stopped: Callable[[], bool]
) -> str:
    """A text of that many tokens: words until it is too long, then fewer, then short ones to fill up. Once
    `stopped`, a text of any length."""

    def length(chosen: list[str]) -> int:
        # Unlike `encode`, this lets other threads run meanwhile: a long text takes seconds.
        return len(tokenizer.encode_batch_fast([" ".join(chosen)], add_special_tokens=False)[0])

    chosen = [random.choice(words)]
    while not stopped() and (now := length(chosen)) < tokens:
        # In common tokenizers a word is at least one token, so that one pass is enough.
        chosen += random.choices(words, k=tokens - now)
    # Length grows with the words: bisect for the most words that fit.
    low, high = 1, len(chosen)
    while low < high and not stopped():
        middle = (low + high + 1) // 2
        low, high = (middle, high) if length(chosen[:middle]) <= tokens else (low, middle - 1)
    chosen = chosen[:low] if length(chosen[:1]) <= tokens else ["a"]
    while not stopped() and length([*chosen, "a"]) <= tokens:
        chosen.append("a")
    return " ".join(chosen)

"""The table of sentences against the source: every id used exists, every id that exists is used."""

from __future__ import annotations

import ast
import re
import string
from collections import defaultdict
from functools import cache
from typing import Any, get_args

import pytest
from support.paths import ROOT

from playground.domain.errors import HostBusy, InvalidInput
from playground.domain.message import Message
from playground.domain.stats.rounds import Ending
from playground.engine.failures.causes import BY_NAME
from playground.engine.failures.stages import STAGE_NAMES
from playground.i18n import LOCALES, locale_of, say, say_message, table
from playground.runs.live import Phase

FILES = sorted([ROOT / "app.py", *(ROOT / "playground").rglob("*.py")])
SECTIONS = {message_id.split(".")[0] for message_id in table()}
# An f-string's beginning, such as "ui.col_", is no id.
ID = re.compile(r"[a-z]+\.[a-z][a-z0-9_]*(?<!_)")
FILE_NAME = re.compile(r".*\.(db|lock|json|toml|log|sock|css|js|py|txt|html)")
# Calls whose first argument is a message id.
SAYING = {
    "say",
    "Message",
    "PlaygroundError",
    "InvalidInput",
    "WorkFailed",
    "ModelUnavailable",
    "EngineFailed",
    "HostBusy",
}


def nodes(kind: type[ast.AST]) -> list[Any]:
    return _nodes()[kind]


@cache
def _nodes() -> defaultdict[type[ast.AST], list[ast.AST]]:
    kinds: defaultdict[type[ast.AST], list[ast.AST]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            kinds[type(node)].append(node)
    return kinds


@cache
def constants() -> set[str]:
    return {node.value for node in nodes(ast.Constant) if isinstance(node.value, str)}


@cache
def words() -> set[str]:
    """What may fill the hole of an f-string: every string of the source, whole and by words, and field names."""
    fields = {node.target.id for node in nodes(ast.AnnAssign) if isinstance(node.target, ast.Name)}
    return fields | constants() | {word for text in constants() for word in text.split()}


def template(node: ast.JoinedStr, prefix: str = "") -> str:
    """An f-string as a regular expression whose groups are its holes."""
    parts = [re.escape(p.value) if isinstance(p, ast.Constant) else "([a-z0-9_]+)" for p in node.values]
    return re.escape(prefix) + "".join(parts)


@cache
def templates() -> set[str]:
    labels = {
        template(call.args[0], "ui.")
        for call in nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == "label" and isinstance(call.args[0], ast.JoinedStr)
    }
    return labels | {template(node) for node in nodes(ast.JoinedStr)}


def makes(text: str, depth: int = 3) -> bool:
    """Whether the source can make this string: it stands there, or an f-string gives it, hole by hole."""
    if text in words():
        return True
    if depth == 0:
        return False
    matches = (re.fullmatch(pattern, text) for pattern in templates())
    # An f-string that is only a hole makes everything, and so says nothing.
    return any(
        m and m.groups() and "".join(m.groups()) != text and all(makes(g, depth - 1) for g in m.groups())
        for m in matches
    )


@cache
def labels() -> set[str]:
    """Ids of `label("name")`."""
    return {
        f"ui.{call.args[0].value}"
        for call in nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id == "label" and isinstance(call.args[0], ast.Constant)
    }


@cache
def literal_ids() -> set[str]:
    found = {text for text in constants() if ID.fullmatch(text) and text.split(".")[0] in SECTIONS}
    return {text for text in found if not FILE_NAME.fullmatch(text)}


@cache
def made_ids() -> set[str]:
    """What f-strings make of names that live in tables."""
    kinds = {
        call.args[0].value
        for call in nodes(ast.Call)
        if ast.unparse(call.func) in ("StreamError", "self.end", "request.end")
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }
    assert {"cut", "stopped", "malformed", "http"} <= kinds
    made = {f"stream.{kind}" for kind in kinds}
    made |= {f"stage.{name}" for name in STAGE_NAMES}
    made |= {f"{section}.{name}" for section in ("failure", "remedy") for name in BY_NAME}
    made |= {f"race.{name}" for name in ("running", "done", "stopped", "failed", "interrupted", "queued")}
    made |= {f"doctor.{state}" for state in ("ok", "note", "broken")}
    advanced = [call for call in nodes(ast.Call) if ast.unparse(call.func).endswith("progress.advance")]
    made |= {f"stage.{c.args[0].value}" for c in advanced if isinstance(c.args[0], ast.Constant)}
    made |= {f"race.{name}" for name in set(get_args(Phase)) - {"waiting", "finished"}}
    made |= {f"measured.ended_{name}" for name in get_args(Ending)}
    fetched = [call for call in nodes(ast.Call) if ast.unparse(call.func) == "FetchProgress" and call.args]
    assert len(fetched) >= 5
    made |= {f"stage.model_{c.args[0].value}" for c in fetched if isinstance(c.args[0], ast.Constant)}
    stages = {text.removeprefix("stage: ") for text in constants() if re.fullmatch(r"stage: \w+", text)}
    assert len(stages) == 4
    return made | {f"stage.model_convert_{name}" for name in stages}


def test_every_id_used_exists() -> None:
    assert literal_ids() | labels() | made_ids() <= table().keys(), "used, but in no file of messages/"


def test_no_unused_id() -> None:
    unseen = table().keys() - (literal_ids() | labels() | made_ids())
    assert {message_id for message_id in unseen if not makes(message_id)} == set()


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


def test_sentences() -> None:
    for message_id, translations in table().items():
        assert set(translations) == set(LOCALES), message_id
        assert all(text.strip() == text != "" for text in translations.values()), message_id
        fields = [placeholders(text) for text in translations.values()]
        assert fields[0] == fields[1], message_id
        # Named, so that a language may order them as it likes.
        assert all(name.isidentifier() for name in fields[0]), message_id


def test_every_call_fills_its_sentence() -> None:
    """Wherever the id is written out and no ** hides the parameters."""
    checked = 0
    for call in nodes(ast.Call):
        name = ast.unparse(call.func).rpartition(".")[2]
        if name not in SAYING or not call.args or not isinstance(call.args[0], ast.Constant):
            continue
        keywords = [keyword.arg for keyword in call.keywords]
        given = {keyword for keyword in keywords if keyword}
        if name == "Message":
            if len(call.args) > 1 and not isinstance(call.args[1], ast.Dict):
                continue
            keys = call.args[1].keys if len(call.args) > 1 else []
            if None in keys:
                continue
            given = {key.value for key in keys}
        elif None in keywords:
            continue
        needed = set.union(*(placeholders(text) for text in table()[call.args[0].value].values()))
        assert needed <= given, ast.unparse(call)
        checked += 1
    assert checked > 20


def test_say() -> None:
    assert say("host.page") != say("host.page", "zh-CN")
    with pytest.raises(KeyError):
        say("host.nothing")


def test_a_problem_within_a_problem_is_said_first() -> None:
    """In the reader's language, both."""
    inner = Message("failure.killed")
    for locale in LOCALES:
        sentence = say_message(Message("run.side_failed", {"side": "A", "cause": inner}), locale)
        assert say_message(inner, locale) in sentence


def test_errors_are_said_like_problems() -> None:
    error = InvalidInput("preset.missing", name="x", nearest="y")
    assert say_message(error) == say_message(Message(error.message_id, error.params))
    assert (error.exit_code, HostBusy("host.busy").exit_code) == (2, 1)


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        (None, "en"),
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("de-DE,de;q=0.9,zh-TW;q=0.5", "zh-CN"),
        ("fr", "en"),
    ],
)
def test_locale_of_a_visitor(header: str | None, locale: str) -> None:
    assert locale_of(header) == locale

"""Reads the options of a Python call such as `LLM(...)`. Only literals are read; nothing is ever executed."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from typing import Any

from playground.domain.errors import InvalidInput

CALLS = ("LLM", "EngineArgs", "AsyncEngineArgs")
OPENS = re.compile(rf"\b({'|'.join(CALLS)})\s*\(")


def is_python(text: str) -> bool:
    """Whether the text constructs an engine."""
    return OPENS.search(text) is not None


def arguments(text: str) -> list[tuple[str, Any]]:
    """Name and value of each argument, in order. Raises InvalidInput for what is no literal."""
    source = textwrap.dedent(text).strip()
    call = _call(source)
    if len(call.args) > 1:
        raise InvalidInput("paste.positional", text=_typed(source, call.args[1]))
    nodes = [("model", argument) for argument in call.args]
    nodes += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    return [(name, _literal(source, name, node)) for name, node in nodes]


def _call(source: str) -> ast.Call:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput("paste.not_python", line=line) from None
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node) in CALLS]
    if len(calls) != 1:
        raise InvalidInput("paste.one_engine", count=len(calls))
    return calls[0]


def _name(call: ast.Call) -> str:
    called = call.func
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _literal(source: str, name: str, node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise InvalidInput("paste.not_literal", name=name, text=_typed(source, node)) from None
    try:
        json.dumps(value)
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput("paste.no_word", name=name, text=_typed(source, node)) from None
    return value


def _typed(source: str, node: ast.expr) -> str:
    """The beginning of the source. ast.unparse would recurse, and fail on nesting that the parser accepts."""
    return (ast.get_source_segment(source, node) or "")[:60]

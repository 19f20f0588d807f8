"""`LLM(...)` and its like in Python -> option names and values. Literals are read; nothing is ever executed."""

from __future__ import annotations

import ast
import re
import textwrap
from typing import Any

from .errors import InvalidInput

CALLS = ("LLM", "EngineArgs", "AsyncEngineArgs")
OPENS = re.compile(rf"\b({'|'.join(CALLS)})\s*\(")
# Deeper nesting would exhaust Python's own parser.
LONGEST = 20_000


def is_python(text: str) -> bool:
    """Whether it constructs an engine."""
    return OPENS.search(text) is not None


def arguments(text: str) -> list[tuple[str, Any]]:
    """Name and value of each argument, in order. InvalidInput names what is no literal."""
    call = _call(text)
    if len(call.args) > 1:
        raise InvalidInput("paste.positional", text=ast.unparse(call.args[1])[:60])
    first = [("model", _literal("model", call.args[0]))] if call.args else []
    return first + [
        (keyword.arg or "**", _literal(keyword.arg or "**", keyword.value)) for keyword in call.keywords
    ]


def _call(text: str) -> ast.Call:
    try:
        tree = ast.parse(textwrap.dedent(text[:LONGEST]).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InvalidInput("paste.not_python", line=line) from None
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _name(node) in CALLS]
    if len(found) != 1:
        raise InvalidInput("paste.one_engine", count=len(found))
    return found[0]


def _name(call: ast.Call) -> str:
    return ast.unparse(call.func).rpartition(".")[2]


def _literal(name: str, node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise InvalidInput("paste.not_literal", name=name, text=ast.unparse(node)[:60]) from None

"""Reads the options of a Python call such as `LLM(...)`. Only literals are read; nothing is ever executed."""

from __future__ import annotations

import ast
import contextlib
import json
import operator
import re
import shlex
import textwrap
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from playground.domain.errors import InvalidInput

from .notes import Notes, shortened
from .options import Option, split
from .shell.words import Word, plain

CALLS = ("LLM", "EngineArgs", "AsyncEngineArgs")
OPENS = re.compile(rf"\b({'|'.join(CALLS)})\s*\(")
LISTED = re.compile(r"""["']vllm["']|vllm\.entrypoints|["'][^"'\n]*vllm serve""")
# What Deploy writes before options that LLM(...) does not take: words for a shell, as JSON.
SERVED_ONLY = "# vllm serve only: "
# Of an expression that is read, as in 32 * 1024.
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
LARGEST = 1 << 63
DEEPEST = 20
TYPES = ("torch.float16", "torch.half", "torch.bfloat16", "torch.float32", "torch.float")
STARTS = re.compile(r"(?:^|[ /])vllm serve\b|-m vllm\.entrypoints")
CODE = re.compile(
    r"^\s*(?:import|from|def|async def|class|subprocess|os\.|\w+\s*=\s*(?:[\[f\"'(]|[\w.]+\()|\w[\w.]*\(|with|@)",
    re.MULTILINE,
)


def is_python(text: str) -> bool:
    """Whether the text constructs an engine."""
    return OPENS.search(text) is not None


def options(text: str, notes: Notes) -> list[Option]:
    """The arguments, in order. Raises InvalidInput for what is no literal, and no name of one."""
    source = textwrap.dedent(text).strip()
    tree = _parsed(source)
    call = _call(tree)
    if len(call.args) > 1:
        raise InvalidInput("paste.positional", text=_typed(source, call.args[1]))
    literals = _literals(tree)
    nodes = [("model", argument) for argument in call.args]
    nodes += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    read: list[Option] = []
    for name, node in nodes:
        if isinstance(node, ast.Name) and node.id in literals:
            name_of, node = node.id, literals[node.id]
            notes.say("paste.resolved", name=name_of, value=shortened(_typed(source, node)))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in TYPES:
            node = ast.Constant(node.attr)
        elif isinstance(node, ast.BinOp):
            node = _computed(node) or node
        value = _literal(source, name, node)
        if name == "**" and isinstance(value, dict) and all(isinstance(key, str) for key in value):
            read += [Option(key, inner) for key, inner in value.items()]
        else:
            read.append(Option(name, value))
    return [*read, *_served_only(source, notes)]


def _served_only(source: str, notes: Notes) -> Iterator[Option]:
    """The options in Deploy's comment."""
    comment = re.search(rf'^\s*{SERVED_ONLY}(".*")$', source, re.MULTILINE)
    if comment:
        with contextlib.suppress(ValueError):
            yield from split(plain(shlex.split(json.loads(comment[1]))), notes)


def listed_words(text: str, notes: Notes) -> list[Word] | str | None:
    """The words of a Python list, or the text for a shell, that starts vLLM's server; None without one."""
    source = textwrap.dedent(text).strip()
    if source.startswith(("'", '"')):
        # The inside of a list.
        source = f"[{source}]"
    if not LISTED.search(source) or (not CODE.search(source) and not source.startswith("[")):
        return None
    try:
        tree = _parsed(source)
    except InvalidInput:
        return None
    literals = _literals(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple)):
            words = [_word(source, item, literals) for item in node.elts]
            if STARTS.search(" ".join(word.text for word in words)):
                _name_added(source, tree, notes)
                return words
        if isinstance(node, (ast.Constant, ast.JoinedStr)) and STARTS.search(shell := _text(node, literals)):
            return shell
    return None


def _text(node: ast.Constant | ast.JoinedStr, literals: dict[str, ast.expr]) -> str:
    """A text for a shell, with literal names filled in, and others as a shell's variables."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    pieces: list[str] = []
    for part in node.values:
        value = part.value if isinstance(part, ast.FormattedValue) else part
        if isinstance(value, ast.Name) and value.id in literals:
            value = literals[value.id]
        pieces.append(str(value.value) if isinstance(value, ast.Constant) else f"${{{_label(value)}}}")
    return "".join(pieces)


def _label(node: ast.expr) -> str:
    """What stands for a value that is not known."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return getattr(node, "id", "…")


def _name_added(source: str, tree: ast.Module, notes: Notes) -> None:
    """Name what the program adds to a list later."""
    for node in ast.walk(tree):
        added = isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)
        if added or (isinstance(node, ast.Call) and _name(node) in ("append", "extend")):
            notes.leave(_typed(source, node), "paste.added_later")


def _word(source: str, node: ast.expr, literals: dict[str, ast.expr]) -> Word:
    """An item of a list of words. What is no literal is marked, as a shell's variable is."""
    resolved: tuple[tuple[str, str], ...] = ()
    if isinstance(node, ast.Call) and _name(node) == "str" and len(node.args) == 1:
        node = node.args[0]
    if isinstance(node, ast.Name) and isinstance(literal := literals.get(node.id), ast.Constant):
        name, node = node.id, literal
        resolved = ((name, str(literal.value)),)
    if isinstance(node, ast.Constant):
        return Word(str(node.value), None, resolved)
    text = _typed(source, node)
    return Word(text, text)


def _literals(tree: ast.Module) -> dict[str, ast.expr]:
    """Names that are set once in the text, with what they are set to."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            values.setdefault(node.id, [])
    stored = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    constants = (ast.Constant, ast.Dict, ast.List, ast.Tuple)
    single = {
        name: _simple(nodes[0]) for name, nodes in values.items() if len(nodes) == 1 and stored.count(name) == 1
    }
    return {name: node for name, node in single.items() if isinstance(node, constants)}


def _simple(node: ast.expr) -> ast.expr:
    """The literal that is meant by dict(name=...), by a product, or by os.environ.get(name, literal)."""
    if isinstance(node, ast.BinOp):
        return _computed(node) or node
    if not isinstance(node, ast.Call):
        return node
    if _name(node) == "dict" and not node.args and all(keyword.arg for keyword in node.keywords):
        keys: list[ast.expr | None] = [ast.Constant(keyword.arg) for keyword in node.keywords]
        return ast.copy_location(
            ast.Dict(keys, [_computed(keyword.value) or keyword.value for keyword in node.keywords]), node
        )
    if len(node.args) == 2 and _reads_environment(node):
        return node.args[1]
    return node


def _reads_environment(call: ast.Call) -> bool:
    """Whether it is os.getenv(...) or os.environ.get(...)."""
    called = _name(call)
    holder = getattr(call.func, "value", None)
    return called == "getenv" or (
        called == "get" and "environ" in (getattr(holder, "attr", ""), getattr(holder, "id", ""))
    )


def _computed(node: ast.expr, depth: int = 0) -> ast.Constant | None:
    """The number that whole numbers and their operators say, as 32 * 1024 does."""
    if isinstance(node, ast.Constant):
        return node if type(node.value) is int and abs(node.value) < LARGEST else None
    if not isinstance(node, ast.BinOp) or type(node.op) not in OPERATORS or depth > DEEPEST:
        return None
    left, right = _computed(node.left, depth + 1), _computed(node.right, depth + 1)
    if left is None or right is None:
        return None
    return ast.copy_location(ast.Constant(OPERATORS[type(node.op)](left.value, right.value)), node)


def _parsed(source: str) -> ast.Module:
    try:
        return _tree(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
    if (end := _line_without_comma(source, line)) is not None:
        raise InvalidInput("paste.no_comma", line=end)
    raise InvalidInput("paste.not_python", line=line)


def _tree(source: str) -> ast.Module:
    with warnings.catch_warnings():
        # Of escapes in a text that nobody here wrote.
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _line_without_comma(source: str, line: int) -> int | None:
    """The line near `line` that only lacks a comma at its end."""
    lines = source.split("\n")
    for number in (line - 1, line):
        if not 1 <= number < len(lines) or not lines[number - 1].strip():
            continue
        changed = [*lines[: number - 1], lines[number - 1].rstrip() + ",", *lines[number:]]
        try:
            _tree("\n".join(changed))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return number
    return None


def _call(tree: ast.Module) -> ast.Call:
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


def _typed(source: str, node: ast.AST) -> str:
    """The beginning of the source. ast.unparse would recurse, and fail on nesting that the parser accepts."""
    return (ast.get_source_segment(source, node) or "")[:60]

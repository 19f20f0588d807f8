"""The layers, read from the source: a lower layer never imports a higher one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.paths import ROOT

LAYERS = (
    {"domain"},
    {"config", "guard", "i18n", "presets", "private_files", "processes", "prompts", "workers"},
    {"engine", "load", "models", "store"},
    {"runs"},
    {"report"},
    {"__main__", "app", "cli", "ui"},
)
FILES = sorted([ROOT / "app.py", *(ROOT / "playground").rglob("*.py")])
STARTERS = re.compile(
    r"Popen|run|call|check_call|check_output|fork|forkpty|posix_spawnp?|spawn\w+|exec[lv]\w*|system"
)


def part(path: Path) -> str:
    """The file's part of the design: app, or a module or package of playground."""
    relative = path.relative_to(ROOT)
    return relative.with_suffix("").parts[0 if len(relative.parts) == 1 else 1]


def layer(name: str) -> int:
    found = [number for number, names in enumerate(LAYERS) if name in names]
    assert found, f"{name} belongs to no layer: put it into LAYERS"
    return found[0]


def imports(path: Path) -> Iterator[str]:
    """Full names of everything imported, relative imports resolved; also inside functions and TYPE_CHECKING."""
    package = path.relative_to(ROOT).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_no_import_from_above(path: Path) -> None:
    if path == ROOT / "playground" / "__init__.py":
        assert not [name for name in imports(path) if name.startswith("playground")]
        return
    own = layer(part(path))
    for name in imports(path):
        pieces = name.split(".")
        if pieces[0] == "playground" and len(pieces) > 1:
            assert layer(pieces[1]) <= own, f"{name_of(path)} imports {name}"
        assert pieces[0] != "app"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_page_knows_gradio(path: Path) -> None:
    if part(path) != "ui":
        assert not [name for name in imports(path) if name.split(".")[0] == "gradio"]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_one_module_starts_processes(path: Path) -> None:
    if part(path) in ("processes", "guard"):
        return
    for call in calls(path):
        module, _, function = call.rpartition(".")
        assert not (module in ("os", "subprocess") and STARTERS.fullmatch(function)), call
        assert "create_subprocess" not in function, call
    banned = {"multiprocessing", "pty"}
    assert not [name for name in imports(path) if name.split(".")[0] in banned]
    assert not [name for name in imports(path) if name in ("subprocess.Popen", "subprocess.run", "os.fork")]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_only_the_store_knows_sql(path: Path) -> None:
    if part(path) == "store":
        return
    assert not [name for name in imports(path) if name.split(".")[0] in ("sqlite3", "sqlite_utils")]
    statement = re.compile(
        r"\s*(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA) ?", re.S
    )
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not statement.match(node.value), node.value


@pytest.mark.parametrize("path", [path for path in FILES if part(path) == "domain"], ids=name_of)
def test_the_domain_is_pure(path: Path) -> None:
    """No I/O, no clock: what it computes depends on what it is given."""
    banned = {"asyncio", "os", "pathlib", "socket", "subprocess", "time", "datetime", "random", "httpx", "logging"}
    assert not [name for name in imports(path) if name.split(".")[0] in banned]
    assert "open" not in set(calls(path))


def test_a_wrong_import_would_be_seen() -> None:
    """The reader of imports itself: relative ones are resolved against the file's package."""
    found = set(imports(ROOT / "playground" / "engine" / "command.py"))
    assert "playground.domain.errors.InvalidInput" in found
    assert "playground.engine.devices.Placement" in found
    assert "subprocess" in set(imports(ROOT / "playground" / "processes.py"))

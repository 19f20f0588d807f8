"""The layers, read from the source: a lower layer never imports a higher one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from support.paths import ROOT

LAYERS = (
    {"domain"},
    {"config", "guard", "i18n", "logs", "presets", "private_files", "processes", "prompts", "workers"},
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


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Full names of everything imported, relative imports resolved; also inside functions and TYPE_CHECKING."""
    package = path.relative_to(ROOT).parts[:-1]
    names: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{module}.{alias.name}" for alias in node.names)
    return frozenset(names)


@cache
def calls(path: Path) -> frozenset[str]:
    return frozenset(ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call))


def outside(*parts: str) -> list[Path]:
    return [path for path in FILES if part(path) not in parts]


def importing(paths: Iterable[Path], *modules: str) -> list[str]:
    """What these files import of the modules, as sentences."""
    beginnings = tuple(f"{module}." for module in modules)
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths
        for name in imports(path)
        if f"{name}.".startswith(beginnings)
    ]


def test_no_import_from_above() -> None:
    top = ROOT / "playground" / "__init__.py"
    assert importing([top], "playground") == []
    for number, names in enumerate(LAYERS):
        above = {f"playground.{name}" for higher in LAYERS[number + 1 :] for name in higher} | {"app"}
        files = [path for path in FILES if path != top and layer(part(path)) == number]
        assert {part(path) for path in files} == names
        assert importing(files, *above) == []


def test_only_the_page_knows_gradio() -> None:
    assert importing(outside("ui"), "gradio") == []


def test_only_one_module_starts_processes() -> None:
    files = outside("processes", "guard")
    banned = ("multiprocessing", "pty", "subprocess.Popen", "subprocess.run", "os.fork")
    assert importing(files, *banned) == []
    for path in files:
        for call in calls(path):
            module, _, function = call.rpartition(".")
            starts = module in ("os", "subprocess") and STARTERS.fullmatch(function)
            assert not starts, f"{path} calls {call}"
            assert "create_subprocess" not in function, f"{path} calls {call}"


def test_only_the_store_knows_sql() -> None:
    files = outside("store")
    assert importing(files, "sqlite3", "sqlite_utils") == []
    statement = re.compile(
        r"\s*(SELECT .* FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM|CREATE TABLE|PRAGMA) ?", re.S
    )
    for path in files:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not statement.match(node.value), f"{path}: {node.value}"


def test_the_domain_is_pure() -> None:
    """No I/O, no clock: what it computes depends on what it is given."""
    files = [path for path in FILES if part(path) == "domain"]
    banned = ("asyncio", "os", "pathlib", "socket", "subprocess", "time", "datetime", "random", "httpx", "logging")
    assert importing(files, *banned) == []
    assert [path for path in files if "open" in calls(path)] == []


def test_a_wrong_import_would_be_seen() -> None:
    """The reader of imports itself: relative ones are resolved against the file's package."""
    names = imports(ROOT / "playground" / "engine" / "command.py")
    assert {"playground.domain.errors.InvalidInput", "playground.engine.devices.Placement"} <= names
    assert "subprocess" in imports(ROOT / "playground" / "processes.py")

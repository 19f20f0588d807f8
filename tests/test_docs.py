"""The README and the pages of `docs/` name what is there, all of it, and nothing else."""

from __future__ import annotations

import argparse
import re
import sqlite3
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path

import pytest
from support.paths import ROOT

from playground import presets
from playground.cli.main import _parser
from playground.config import VARIABLES, Config
from playground.domain.claims.claims import CLAIMS
from playground.domain.limits import Limits
from playground.engine.kinds.table import KINDS
from playground.i18n import table
from playground.store import History

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
TEXTS = {Path("README.md"): README, **{Path("docs") / f"{name}.md": text for name, text in PAGES.items()}}
PRESET_TABLES = PAGES["presets"].partition("## Writing your own")[0]
MOST_LINES = 200
INDENT = 2


def section(title: str, text: str = README) -> str:
    match = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert match, f"no section {title!r}"
    return match[1]


def first_column(text: str) -> list[str]:
    """The names in backticks that open a table's rows."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def anchors(text: str) -> set[str]:
    """What a link to a heading of this page may name."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


def verbs(parser: argparse.ArgumentParser, prefix: str = "") -> set[str]:
    """Every verb that can be typed, as in `history list`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {verb for name, inner in action.choices.items() for verb in verbs(inner, f"{prefix} {name}")}
    return {prefix.strip()}


def drawn_tree() -> set[str]:
    """The paths of the README's tree; folders end with a slash."""
    block = re.search(r"^```text\n(.*?)^```", section("Development"), re.MULTILINE | re.DOTALL)
    assert block
    paths: set[str] = set()
    parents: list[str] = []
    for line in block[1].splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // INDENT
        parents = parents[:depth]
        paths.add("".join(parents) + name)
        if name.endswith("/"):
            parents.append(name)
    return paths


def real_tree() -> set[str]:
    """What the tree should show: the folders at the top, and what lies directly in `playground/`."""
    ignored = [pattern.strip("/") for pattern in (ROOT / ".gitignore").read_text().split()] + [".*", "__init__.py"]
    top = [path for path in ROOT.iterdir() if path.is_dir() or path.name == "app.py"]
    return {
        path.relative_to(ROOT).as_posix() + ("/" if path.is_dir() else "")
        for path in [*top, *(ROOT / "playground").iterdir()]
        if not any(fnmatch(path.name, pattern) for pattern in ignored)
    }


def test_every_variable_is_documented_with_its_default() -> None:
    rows = re.findall(r"^\| `(PLAYGROUND_\w+)` \| (.+?) \| (.+) \|$", PAGES["configuration"], re.MULTILINE)
    assert [name for name, _, _ in rows] == list(VARIABLES)
    config = Config()
    for name, default, _ in rows:
        value = getattr(config, name.removeprefix("PLAYGROUND_").lower())
        if isinstance(value, Path):
            assert value.name.startswith(default.strip("`").rsplit("/", 1)[-1].removesuffix("UID")), name
        elif isinstance(value, Limits):
            assert default == "see below", name
        elif value:
            assert default == f"`{value}`", name
        else:
            assert default in ("none", "any", "`0`"), name


def test_every_limit_is_documented_as_messages_name_it() -> None:
    page = section("Limits", PAGES["configuration"])
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| (.+) \|$", page, re.MULTILINE)
    expected = [(name, f"{limit:,}", table()[f"limit.{name}"]["en"]) for name, limit in asdict(Limits()).items()]
    assert rows == expected


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_every_variable_that_is_named_exists(path: Path) -> None:
    assert set(re.findall(r"\bPLAYGROUND_[A-Z_]*[A-Z]\b", TEXTS[path])) <= set(VARIABLES)


def test_every_figure_is_documented() -> None:
    """Every figure that has a definition on the page, by its English name."""
    names = {
        table()[message_id.removesuffix("_help")]["en"] for message_id in table() if is_definition(message_id)
    }
    listed = re.findall(r"^\| ([^|]+) \|", section("Figures", PAGES["figures"]), re.MULTILINE)
    assert names <= set(listed)


def is_definition(message_id: str) -> bool:
    return message_id.startswith("figure.") and message_id.endswith("_help")


def test_every_preset_is_documented() -> None:
    assert sorted(first_column(PRESET_TABLES)) == sorted(presets.names())


def test_every_key_of_a_preset_is_documented() -> None:
    keys = set(presets.Preset.model_fields) - {"name"} | {"common"}
    assert set(first_column(section("Writing your own", PAGES["presets"]))) == keys


def test_every_claim_is_documented_with_its_presets() -> None:
    claims: dict[str, set[str]] = {name: set() for name in CLAIMS}
    for name in presets.names():
        if claim := presets.load(name).claim:
            claims[claim].add(name)
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGES["claims"], re.MULTILINE)
    assert {claim: set(re.findall(r"`([^`]+)`", named)) for claim, named in rows} == claims


@pytest.mark.parametrize("name", presets.names())
def test_the_table_tells_which_presets_need_a_gpu(name: str) -> None:
    row = next(line for line in PRESET_TABLES.splitlines() if line.startswith(f"| `{name}` |"))
    assert ("GPU" in row) == presets.load(name).gpu


@pytest.mark.parametrize("name", presets.names())
def test_presets_have_a_sentence_in_both_languages(name: str) -> None:
    preset = presets.load(name)
    for told in (preset.title, preset.shows, preset.needs):
        assert told.en.strip()
        assert re.search("[\u4e00-\u9fff]", told.zh)
    assert all(len(side.label) <= 24 for side in preset.sides)


def test_every_verb_is_documented() -> None:
    typed = re.findall(r"python -m playground ((?:history )?[a-z]+)", PAGES["command-line"])
    assert set(typed) == verbs(_parser())


def test_every_benchmark_is_documented() -> None:
    """Those that measure something; the others are servers, models and surfaces that these use."""
    helpers = {"common", "dummy_model", "paced_server", "surfaces", "trials", "trivial_page", "visitor"}
    files = [*(ROOT / "benchmarks").glob("*.py"), *(ROOT / "benchmarks").glob("*/__main__.py")]
    names = {path.parent.name if path.stem == "__main__" else path.stem for path in files} - helpers
    assert set(first_column(PAGES["benchmarks"])) == names


def test_every_make_target_is_documented() -> None:
    makefile = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony
    targets = set(phony[1].split())
    assert set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)) == targets
    assert set(first_column(section("Development"))) == {f"make {target}" for target in targets - {"help"}}
    for text in TEXTS.values():
        assert set(re.findall(r"(?:^|`|\n)make ([a-z-]+)", text)) <= targets


def test_the_tree_is_complete() -> None:
    drawn, real = drawn_tree(), real_tree()
    assert sorted(real - drawn) == [], "these are missing in the README's tree"
    assert sorted(drawn - real) == [], "the README's tree shows what doesn't exist"


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    assert len(README.splitlines()) < MOST_LINES
    for name in PAGES:
        assert f"(docs/{name}.md)" in section("Documentation"), name


@pytest.mark.parametrize("path", TEXTS, ids=str)
def test_links_lead_somewhere(path: Path) -> None:
    # Pictures are made by the browser tests.
    for target in re.findall(r"(?<!!)\[[^\]]+\]\(([^)]+)\)", TEXTS[path]):
        if "://" in target:
            continue
        file, _, heading = target.partition("#")
        linked = ROOT / path.parent / file if file else ROOT / path
        assert linked.exists(), target
        assert not heading or heading in anchors(linked.read_text(encoding="utf-8")), target


def test_the_architecture_names_files_that_exist() -> None:
    page = PAGES["architecture"]
    named = set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|toml))?|[a-z0-9]+\.py)`", page))
    assert len(named) > 20
    for name in named:
        assert (ROOT / "playground" / name).exists() or (ROOT / name).exists(), name
    files = {path.name for path in (ROOT / "playground" / "messages").glob("*.toml")}
    assert set(first_column(section("Sentences", page))) == files


def test_the_changelog_names_this_version() -> None:
    version = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version
    assert f"## {version[1]}" in (ROOT / "CHANGELOG.md").read_text()


def test_every_table_is_documented_with_its_columns(config: Config) -> None:
    History(config.db).open()
    with sqlite3.connect(config.db) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        own = [name for name in names if not name.startswith(("_", "texts_"))]
        columns = {name: {column for _, column, *_ in db.execute(f"PRAGMA table_info({name})")} for name in own}
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", section("The database", PAGES["history"]), re.MULTILINE)
    assert {name: set(re.findall(r"`(\w+)`", text)) for name, text in rows} == columns


def test_every_table_can_be_browsed(config: Config) -> None:
    """Programs that show any database count and list each of its tables."""
    History(config.db).open()
    with sqlite3.connect(config.db) as db:
        for (name,) in list(db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")):
            db.execute(f"SELECT count(*) FROM [{name}]").fetchone()
            db.execute(f"SELECT * FROM [{name}] LIMIT 1").fetchall()


def test_the_table_of_engines_says_what_each_has() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|.*?\| ([^|]*) \| ([^|]*) \| [^|]* \|$", PAGES["engines"], re.MULTILINE)
    settings = {name: set(re.split(r", (?:and )?", cell.removeprefix("those, and "))) for name, cell, _ in rows}
    del settings["runtime"]
    settings["transformers-batching"] |= settings["transformers"]
    assert settings == {name: set(kind.knobs) for name, kind in KINDS.items()}
    methods = {name: set(cell.split(", ")) - {"none"} for name, _, cell in rows[1:]}
    assert methods == {name: set(kind.speculation) for name, kind in KINDS.items()}

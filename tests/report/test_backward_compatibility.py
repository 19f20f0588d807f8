"""What was kept before still opens: a database, exported documents and presets, written by an earlier version.

`tests/store/before` holds real runs on the CPU engine (a race, a sweep of two k, a start that failed) and
made-up ones of every other kind. What people read may be worded anew; every figure, id and setting stays.
"""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT
from support.schema import check

from playground import presets
from playground.domain.record.run import Run
from playground.domain.sweep.record import Sweep
from playground.report.exports.files import exported
from playground.store import History

BEFORE = ROOT / "tests" / "store" / "before"
DOCUMENTS = sorted(BEFORE.glob("*-*.json"))
TABLES = sorted(BEFORE.glob("*.csv"))
PRESETS = json.loads((BEFORE / "presets.json").read_text(encoding="utf-8"))
# Where a document says something in words.
SENTENCES = {"advice", "message", "reason", "statements"}


@pytest.fixture
def history(tmp_path: Path) -> History:
    path = tmp_path / "before.db"
    with sqlite3.connect(path) as database:
        database.executescript((BEFORE / "history.sql").read_text(encoding="utf-8"))
    database.close()
    return History(path)


def kept(history: History, path: Path) -> Run | Sweep:
    kept_id, kind, _ = path.name.rsplit(".", 2)
    record = history.sweep(kept_id) if kind == "sweep" else history.get(kept_id)
    assert record is not None
    return record


def without_sentences(document: Any) -> Any:
    """Figures to twelve digits: which library adds them up moves the last one."""
    if isinstance(document, float):
        return float(f"{document:.12g}")
    if isinstance(document, dict):
        return {
            key: value if key not in SENTENCES or not isinstance(value, str | list) else None
            for key, value in ((key, without_sentences(value)) for key, value in document.items())
        }
    if isinstance(document, list):
        return [without_sentences(value) for value in document]
    return document


def of_before(today: Any, before: Any) -> Any:
    """Today's value, as far as the earlier one says anything: keys may have been added."""
    if isinstance(today, dict) and isinstance(before, dict):
        return {key: of_before(value, before[key]) for key, value in today.items() if key in before}
    if isinstance(today, list) and isinstance(before, list) and len(today) == len(before):
        return [of_before(*pair) for pair in zip(today, before, strict=True)]
    return today


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_document(path: Path, history: History) -> None:
    """It is what today's schema describes, and what today's code makes of the same record."""
    before = json.loads(path.read_text(encoding="utf-8"))
    check("sweep" if path.name.endswith(".sweep.json") else "compare", before)
    today = json.loads(exported(kept(history, path), "json"))
    assert without_sentences(of_before(today, before)) == without_sentences(before)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_table(path: Path, history: History) -> None:
    """Columns may have been added."""
    before = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
    today = csv.DictReader(exported(kept(history, path), "csv").splitlines())
    assert [{key: row[key] for key in before[0]} for row in today] == before


def test_every_run_opens(history: History) -> None:
    """The list, each run, and the page that is exported of it."""
    summaries = history.summaries()
    assert len(summaries) == 7
    for summary in summaries:
        record = history.get(summary.id) or history.sweep(summary.id)
        assert record is not None
        assert "</html>" in exported(record, "html")


# Its draft was the target itself, and is a model that was trained for it.
CHANGED = {"smollm2-draft"}


@pytest.mark.parametrize("name", sorted(PRESETS.keys() - CHANGED))
def test_preset(name: str) -> None:
    """Settings that came later are None, and no preset sets them."""
    preset = presets.load(name)
    before = PRESETS[name]["case"]
    assert of_before(preset.case.model_dump(mode="json"), before) == before
    assert (preset.sweep and preset.sweep.model_dump(mode="json")) == PRESETS[name]["sweep"]

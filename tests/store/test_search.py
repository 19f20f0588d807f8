"""The search index: what it finds, before and after it is filled, and of older databases."""

from __future__ import annotations

import sqlite3

import pytest
from support.stored_runs import OLDEST, answered, run, saved

from playground.config import Config
from playground.store import History, search


def indexed(history: History) -> None:
    while history.index():
        pass


def ids(history: History, **filters: str) -> list[str]:
    return [summary.id for summary in history.summaries(**filters)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("lockmak", ["r1"]),
        ("AN OLD", ["r1"]),
        ("中文的回", ["r2"]),
        # No pattern and no query language.
        ("100%", ["r2"]),
        ("a_b", ["r2"]),
        ("old NOT clock", []),
        ('say "x"', ["r2"]),
        # Shorter than what the index knows.
        ("回答", ["r2"]),
        ("%", ["r2"]),
        ("zz", []),
    ],
)
@pytest.mark.parametrize("filled", [False, True])
def test_any_part_of_a_text_is_found(history: History, text: str, lines: list[str], filled: bool) -> None:
    saved(history, answered("r1", "an old clockmaker"))
    saved(history, answered("r2", '中文的回答 100% a_b say "x"', prompt="p"))
    if filled:
        indexed(history)
    assert ids(history, text=text) == lines


@pytest.mark.parametrize("few", [0, 1])
@pytest.mark.parametrize("filled", [False, True])
def test_any_part_of_a_models_name_is_found(
    history: History, filled: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "FEW", few)
    saved(history, run(status="done"))
    if filled:
        indexed(history)
    assert ids(history, model="R/draft_") == ["r1"]
    assert ids(history, model="owner/draftx") == []


@pytest.mark.parametrize("few", [0, 10])
def test_filters_are_combined(history: History, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "FEW", few)
    saved(history, answered("r1", "same words", preset="p"))
    saved(history, answered("r2", "same words"))
    indexed(history)
    assert ids(history, text="same words") == ["r2", "r1"]
    assert ids(history, text="same words", preset="p", model="target") == ["r1"]
    assert ids(history, text="same words", preset="p", model="no target") == []
    # One of them is not indexed yet.
    saved(history, answered("r3", "same words", preset="p"))
    assert ids(history, text="same words", preset="p", model="target") == ["r3", "r1"]
    assert [line.id for line in history.summaries(text="same words", limit=2)] == ["r3", "r2"]


def test_a_run_under_way_is_found_and_indexed_when_it_is_over(history: History) -> None:
    running = saved(history, run(prompt="under way"))
    indexed(history)
    assert ids(history, text="under way") == ["r1"]
    running.sides[0].trials = answered("r1", "then an answer").sides[0].trials
    running.status = "done"
    history.finish(running)
    indexed(history)
    assert ids(history, text="then an answer") == ["r1"]


def test_an_older_database_is_indexed_a_batch_at_a_time(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(config.db) as db:
        db.executescript(OLDEST)
        db.execute(
            "INSERT INTO runs SELECT 'r1', '2026-02-01', mode, status, 'p', seed, workload, machine, problem"
            " FROM runs"
        )
    monkeypatch.setattr(search, "BATCH", 1)
    monkeypatch.setattr(search, "MOST_FRESH", 0)
    history = History(config.db)
    # Listed at once.
    assert ids(history) == ["r1", "r0"]
    assert history.values("preset") == ["p"]
    limits = history.search_limits(text="old")
    assert limits is not None
    assert (limits.message_id, limits.params["left"]) == ("history.indexing", 2)
    lines = [ids(history, text="old")]
    while history.index():
        lines.append(ids(history, text="old"))
    assert [len(listed) for listed in lines] == [0, 1, 2]
    assert history.search_limits(text="old") is None
    assert ids(history, model="t") == ["r0"]


def test_two_processes_index_the_same_runs_once(config: Config, history: History) -> None:
    saved(history, answered("r1", "an old clockmaker"))
    with history._file.reading() as db:
        batch = search.to_index(db)
    indexed(history)
    with history._file.writing() as db:
        search.index(db, batch)
        assert db.execute("SELECT count(*) FROM texts WHERE texts MATCH 'clockmaker'").fetchone() == (1,)


def test_of_a_very_long_text_the_beginning_is_found(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "LONGEST_TEXT", 100)
    saved(history, answered("r1", "first" + "x" * 100 + "last"))
    indexed(history)
    assert ids(history, text="first") == ["r1"]
    assert ids(history, text="last") == []


def test_a_search_reads_only_so_much_that_is_not_indexed(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs under way may be long, and the index waits for their end."""
    monkeypatch.setattr(search, "MOST_READ", 100)
    for number in (1, 2, 3):
        saved(history, answered(f"r{number}", "same words" + "x" * 60))
    assert ids(history, text="same words") == ["r3", "r2"]
    indexed(history)
    assert ids(history, text="same words") == ["r3", "r2", "r1"]


# What the query language of the index, LIKE or SQLite itself would read otherwise.
ODD = (
    '"',
    '"""',
    "a AND b",
    "NEAR(",
    "***",
    "^abc",
    "text:abc",
    "((((",
    "%%%",
    "___",
    "\\\\\\",
    "😀😀😀",
    "\n\n\n",
)


@pytest.mark.parametrize("text", [*ODD, "abc\0", "\0\0\0", "\ud83dabc"])
def test_any_characters_may_be_searched_for(history: History, text: str) -> None:
    saved(history, run("r1", status="done"))
    while history.index():
        pass
    for filters in ({"text": text}, {"model": text}, {"preset": text}):
        assert history.summaries(**filters) == []
    history.search_limits(text=text, model=text)

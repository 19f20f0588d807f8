"""How fast is a large history? Lists, searches and filters, as the History tab asks for them.

The database is made in the shape of the first release, so that bringing it up to date and building the search
index are measured, too: with the longest time that the index keeps other writers waiting. Then each query is asked
again and again, with other words each time.

usage: python -m benchmarks.history [--runs N] [--requests N]
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from sqlite_utils import Database

from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Workload
from playground.store import History, rows
from playground.store.migrations import migrations

TARGET_MS = 100
REPEATS = 40
SIDES = 2
WORDS = 20_000
WORDS_IN_ANSWER = 60
MODELS = 300
PRESETS = ("quick", "careful", "long")


def main(runs: int, requests: int) -> None:
    with tempfile.TemporaryDirectory(prefix="history-") as place:
        path = Path(place) / "history.db"
        draw = random.Random(0)
        vocabulary = [_word(draw) for _ in range(WORDS)]
        fill(path, runs, requests, draw, vocabulary)
        print(f"{runs} runs of {SIDES} sides with {requests} requests each: {_mib(path)} MiB")
        history = History(path)
        print(f"{'brought up to date':<34}{_seconds(history.open):>10.1f} s")
        slowest, began = 0.0, time.perf_counter()
        before = began
        while history.index():
            slowest, before = max(slowest, time.perf_counter() - before), time.perf_counter()
        print(f"{'search index built':<34}{before - began:>10.1f} s, a batch at most {slowest:.2f} s")
        began = time.perf_counter()
        while history.summarise():
            pass
        print(f"{'results noted':<34}{time.perf_counter() - began:>10.1f} s")
        _tag(path)
        print(f"{'with the index':<34}{_mib(path):>10} MiB")
        print(f"\n{'':<34}{'median ms':>10}{'p95 ms':>10}{'lines':>8}")
        for name, ask in queries(history, draw, vocabulary).items():
            times, lines = [], 0
            for _ in range(REPEATS):
                began = time.perf_counter()
                lines = len(ask())
                times.append((time.perf_counter() - began) * 1000)
            times.sort()
            p95 = times[int(0.95 * len(times))]
            mark = "" if p95 < TARGET_MS else f"  above {TARGET_MS} ms"
            print(f"{name:<34}{times[len(times) // 2]:>10.1f}{p95:>10.1f}{lines:>8}{mark}")


def queries(history: History, draw: random.Random, vocabulary: list[str]) -> dict[str, Callable[[], list[object]]]:
    """What is asked, by a name. Words are drawn anew each time."""

    def common() -> str:
        return vocabulary[draw.randrange(20)]

    def rare() -> str:
        return vocabulary[draw.randrange(WORDS // 2, WORDS)]

    def search(**filters: Callable[[], object]) -> Callable[[], list[object]]:
        return lambda: list(history.summaries(**{name: value() for name, value in filters.items()}))  # type: ignore[arg-type]

    return {
        "first page": search(),
        "text without a match": search(text=lambda: f"{rare()}-{rare()}"),
        "common letters without a match": search(text=lambda: f"{common()} qq {common()}"),
        "common word": search(text=common),
        "rare word": search(text=rare),
        "two words in a row": search(text=lambda: f"{common()} {common()}"),
        "Chinese": search(text=lambda: "机器学习"),
        "two characters": search(text=lambda: rare()[:2]),
        "model": search(model=lambda: f"model-{draw.randrange(MODELS)}"),
        "every model": search(model=lambda: "owner"),
        "no such model": search(model=lambda: "elsewhere"),
        "preset": search(preset=lambda: draw.choice(PRESETS)),
        "text, model and preset": search(
            text=common, model=lambda: "model-1", preset=lambda: draw.choice(PRESETS)
        ),
        "most tokens a second": search(order=lambda: "rate"),
        "most tokens, of a text": search(order=lambda: "rate", text=common),
        "a machine": search(machine=lambda: "x"),
        "a machine and a text": search(machine=lambda: "x", text=common),
        "a verdict that none has": search(verdict=lambda: "faster"),
        "starred, of a text": search(starred=lambda: True, text=common),
        "a tag that few have": search(tag=lambda: "few"),
        "a tag that most have": search(tag=lambda: "most"),
        "a tag that none has": search(tag=lambda: rare()),
        "page 1000, most tokens a second": search(order=lambda: "rate", offset=lambda: 50_000, limit=lambda: 51),
        "page 1000": search(offset=lambda: 50_000, limit=lambda: 51),
        "machines to choose from": lambda: list(history.values("machine")),
        "tags to choose from": lambda: list(history.tags()),
        "presets to choose from": lambda: list(history.values("preset")),
        "earlier starts of engines": lambda: list(history.start_seconds("cpu")),
    }


def fill(path: Path, runs: int, requests: int, draw: random.Random, vocabulary: list[str]) -> None:
    """A database of the first release's shape, as if so many runs had been saved."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")
    db = Database(connection)
    migrations.apply(db, stop_before="009_conversations")
    connection.execute("BEGIN")
    cumulative = list(accumulate(1 / (rank + 10) for rank in range(len(vocabulary))))
    chunks = json.dumps([[10.0 * number, 1, "word "] for number in range(WORDS_IN_ANSWER)])
    for number in range(runs):
        run = _run(number, draw)
        _insert(connection, "runs", rows.run_row(run))
        for position, side in enumerate(run.sides):
            _insert(connection, "sides", rows.side_row(run.id, position, side))
            _insert(connection, "trials", rows.trial_row(run.id, position, side.trials[0]))
            words = draw.choices(vocabulary, cum_weights=cumulative, k=WORDS_IN_ANSWER * requests)
            for request in range(requests):
                answer = " ".join(words[request * WORDS_IN_ANSWER :][:WORDS_IN_ANSWER])
                trace = RequestTrace(run.workload.conversation, sent_ms=1.0, ended=True)
                row = rows.request_row(run.id, position, 0, request, trace, 0)
                row |= {
                    "conversation": json.dumps([{"role": "user", "content": run.workload.prompt}]),
                    "output_text": answer + ("机器学习 是什么" if number % 50 == 0 else ""),
                    "chunks": chunks,
                }
                _insert(connection, "requests", row)
    connection.execute("COMMIT")
    connection.close()


def _run(number: int, draw: random.Random) -> Run:
    when = f"2026-{1 + number * 11 // 10**6 % 12:02}-{1 + number % 28:02}T{number % 24:02}:00:00+00:00"
    sides = [
        SideRecord(
            label,
            EngineSettings(target=f"owner/model-{draw.randrange(MODELS)}"),
            device="cpu",
            ready_after_s=20.0,
            trials=[Trial(complete=True)],
        )
        for label in "AB"
    ]
    return Run(
        id=f"20260101-{number:06}-0000",
        created_at=when,
        mode="race",
        workload=Workload(prompt=f"Question {number}: what is it?"),
        sides=sides,
        preset=draw.choice(PRESETS),
        status="done",
        machine={"cpu": "x", "cores": 2},
    )


def _insert(connection: sqlite3.Connection, table: str, row: rows.Row) -> None:
    """Without the columns of later shapes."""
    known = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
    row = {name: value for name, value in row.items() if name in known}
    names = ", ".join(f'"{name}"' for name in row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values()))


def _word(draw: random.Random) -> str:
    return "".join(_syllables(draw))


def _syllables(draw: random.Random) -> Iterator[str]:
    for _ in range(draw.randint(1, 4)):
        yield draw.choice("bcdfghklmnprstvw") + draw.choice("aeiou") + draw.choice(["", "n", "r", "s", "l"])


def _tag(path: Path) -> None:
    """Nine of ten runs have a tag, one of a thousand another."""
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO entry_tags SELECT 'most', number FROM entries WHERE number % 10 > 0")
        connection.execute("INSERT INTO entry_tags SELECT 'few', number FROM entries WHERE number % 1000 = 1")


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _mib(path: Path) -> int:
    return sum(file.stat().st_size for file in path.parent.iterdir()) // 2**20


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=2, help="of each side")
    arguments = parser.parse_args()
    main(arguments.runs, arguments.requests)

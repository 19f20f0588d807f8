"""The History tab's handlers: lists, opens and exports, whatever the database holds, without stopping the page."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from support.measured_run import measured_run
from support.races import SIDES, finished, raced, workload
from support.stored_runs import run, saved
from support.waiting import until

import app
from playground import presets
from playground.config import Config
from playground.i18n import say
from playground.runs.host import Host
from playground.store import READERS, History
from playground.ui.compare import measure_values
from playground.ui.page import build
from playground.ui.shared.form_origin import origin
from playground.ui.shared.visitor import CURRENT, NAME, NOBODY
from playground.workers import Workers

pytestmark = pytest.mark.usefixtures("unserved")
REQUEST = gr.Request(headers={"accept-language": "en"})
RESULTS = Path(__file__).parents[1] / "cases" / "results"


class Page:
    """The page's handlers, by module and name."""

    def __init__(self, host: Host) -> None:
        self.blocks = build(host)
        handlers = [fn.fn for fn in self.blocks.fns.values() if hasattr(fn.fn, "__name__")]
        self.functions = {
            f"{handler.__module__.removeprefix('playground.ui.')}.{handler.__name__}": handler
            for handler in handlers
        }

    def filters(self) -> dict[Any, Any]:
        """The values of the list's fields, all empty."""
        tab = self.functions["history.tab.listed"].__self__._tab
        fields = {tab.offset: 0, tab.text: "", tab.model: "", tab.starred: False}
        return {**fields, **dict.fromkeys(tab.choices.values(), "")}

    async def imported(self, path: str) -> tuple[list[dict[str, Any]], str]:
        """The lines after a file was uploaded to the import, and what is said."""
        tab = self.functions["history.tab.listed"].__self__._tab
        handler = self.functions["history.imports.on_upload"]
        changed = await handler({**self.filters(), tab.importing: path}, REQUEST)
        return json.loads(changed.get(tab.runs, '{"rows": []}'))["rows"], changed[tab.note]

    async def listed(
        self, text: str = "", model: str = "", preset: str = "", tag: str = "", starred: bool = False
    ) -> tuple[list[dict[str, Any]], str]:
        """The lines, and the note below the filters."""
        handler = self.functions["history.tab.listed"]
        tab = handler.__self__._tab
        values = {**self.filters(), tab.text: text, tab.model: model, tab.starred: starred}
        changed = await handler({**values, tab.choices["preset"]: preset, tab.choices["tag"]: tag}, REQUEST)
        return json.loads(changed[tab.runs])["rows"], changed[tab.note]

    async def opened(self, saved_id: str, request: gr.Request = REQUEST) -> list[Any]:
        values = await self.functions["history.tab.clicked"](SimpleNamespace(run=saved_id), request)
        return list(values.values()) if isinstance(values, dict) else []

    async def changed(self, saved_id: str, visitor: str, **fields: object) -> bool:
        """Whether this visitor's request to change it was met."""
        [kept] = [block for block in self.blocks.blocks.values() if getattr(block, "elem_id", None) == "kept"]
        before = CURRENT.set(visitor)
        try:
            return bool(await kept.annotate({"run": saved_id, **fields}))  # type: ignore[attr-defined]
        finally:
            CURRENT.reset(before)

    async def exported(self, saved_id: str, form: str = "json") -> str:
        [kept] = [block for block in self.blocks.blocks.values() if getattr(block, "elem_id", None) == "kept"]
        return str(await kept.file_text({"run": saved_id, "form": form}))  # type: ignore[attr-defined]


@pytest.fixture
def page(host: Host) -> Page:
    return Page(host)


@pytest.fixture
def unusable(host: Host) -> None:
    """From now on the database is none."""
    host.history.open()
    for suffix in ("-wal", "-shm"):
        host.config.db.with_name(host.config.db.name + suffix).unlink(missing_ok=True)
    host.config.db.write_bytes(b"no database" * 1000)


async def test_a_row_of_a_newer_version(host: Host, page: Page, config: Config) -> None:
    saved(host.history, run("r1", status="done"))
    saved(host.history, run("r2", status="done"))
    with sqlite3.connect(config.db) as db:
        db.execute("UPDATE runs SET workload = '{}' WHERE id = 'r2'")
    rows, _ = await page.listed()
    assert {row["id"] for row in rows} == {"r1", "r2"}
    [line] = [row["cells"] for row in rows if row["id"] == "r2"]
    assert say("race.unreadable") in line
    assert any("r2 can't be read" in cell for cell in line)
    assert any("r2 can&#x27;t be read" in str(value) for value in await page.opened("r2"))
    assert await page.exported("r2") == ""
    assert any("r1" in str(value) for value in await page.opened("r1"))
    assert json.loads(await page.exported("r1"))["run_id"] == "r1"


async def test_a_run_whose_timings_are_damaged(host: Host, page: Page, config: Config) -> None:
    comparison = await raced(host)
    with sqlite3.connect(config.db) as db:
        db.execute('UPDATE requests SET chunks = \'[["a", 1, "x"], [{}, 1, 2]]\'')
    values = await page.opened(comparison.id)
    assert any("can&#x27;t be read" in str(value) for value in values)
    assert await page.exported(comparison.id) == ""


async def test_the_trend_of_a_preset(host: Host, page: Page) -> None:
    handler = page.functions["history.tab.listed"]
    tab = handler.__self__._tab
    for number, version in enumerate(("0.31.0", "0.32.0")):
        made = replace(
            measured_run(), id=f"r{number}", created_at=f"2026-08-0{number + 1}T00:00:00+00:00", preset="p"
        )
        made.sides[0].runtime_version = version
        saved(host.history, made)
        drawn = (await handler({**page.filters(), tab.choices["preset"]: "p"}, REQUEST))[tab.trend]
        assert drawn.count("<circle") == (2 if number else 0)
    assert "2.00x to 2.00x over 2 runs; vLLM 0.31.0 -&gt; 0.32.0 on 2026-08-02" in drawn
    assert (await handler(page.filters(), REQUEST))[tab.trend] == ""


async def test_results_of_another_tool(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upload is listed and opens with its figures; its settings are no input, and a damaged one is refused."""
    monkeypatch.setattr(measure_values, "get_upload_folder", lambda: str(tmp_path))
    for name in ("vllm-append.json", "damaged-value.json"):
        (tmp_path / name).write_bytes((RESULTS / name).read_bytes())
    rows, said = await page.imported(str(tmp_path / "vllm-append.json"))
    assert "Added to the history: 3" in said
    assert [say("race.mode_imported") in row["cells"] for row in rows] == [True] * 3
    [first] = [row["id"] for row in rows if "first" in row["cells"]]
    values = [str(value) for value in await page.opened(first)]
    assert any("vllm bench serve" in value and "387.5" not in value and "388" in value for value in values)
    assert not any(say("kept.load") in value for value in values)
    assert any(say("kept.original") in value for value in values)
    assert await page.exported(first, "original") == (RESULTS / "vllm-append.json").read_text().splitlines()[0]
    refused = await page.functions["history.actions.load"](SimpleNamespace(run=first), REQUEST)
    assert any("another tool" in str(value) for value in refused.values())
    assert "mean_ttft_ms" in (await page.imported(str(tmp_path / "damaged-value.json")))[1]
    assert "alert" in (await page.imported("/etc/passwd"))[1]


@pytest.mark.usefixtures("unusable")
async def test_a_database_that_can_not_be_used(host: Host, page: Page) -> None:
    rows, note = await page.listed()
    assert rows == []
    assert "The history is unavailable" in note
    assert any("not a database" in str(value) for value in await page.opened("r1"))
    assert await page.exported("r1") == ""
    # Nothing of the rest of the page needs it.
    arrived = await page.functions["page.greet"](origin(presets.load(presets.EMBEDDED)), REQUEST)
    assert any("smollm2" in str(value).lower() or "<strong>" in str(value) for value in arrived.values())
    await page.functions["page.greet"](json.dumps(["20261130-000000-abcd", 2]), REQUEST)


@pytest.mark.usefixtures("unusable")
def test_the_start_says_it_and_goes_on(host: Host, capsys: pytest.CaptureFixture[str]) -> None:
    app._tidy_up(host)
    assert "not a database" in capsys.readouterr().err


@pytest.mark.usefixtures("unusable")
async def test_a_run_that_could_not_be_saved_can_be_kept_as_a_file(host: Host, page: Page) -> None:
    comparison = await raced(host)
    await until(lambda: host.pool.holder is None)
    [row], _ = await page.listed()
    assert row["id"] == comparison.id
    assert say("race.unsaved") in row["cells"]
    assert any(comparison.id in str(value) for value in await page.opened(comparison.id))
    # The buttons are beside the run itself, too.
    ended = await page.functions["compare.controls.ended"](comparison.id, REQUEST)
    assert any(comparison.id in str(value) and "Save as JSON" in str(value) for value in ended.values())
    for form in ("json", "csv", "html"):
        assert comparison.id in await page.exported(comparison.id, form)
    # Its settings can be loaded, too.
    load = await page.functions["history.actions.load"](SimpleNamespace(run=comparison.id), REQUEST)
    assert "compare" in str(load)


async def test_a_locked_database_does_not_stop_the_page(host: Host, page: Page, config: Config) -> None:
    """While one visitor waits for it, the event loop serves the others."""
    saved(host.history, run(status="done"))
    with sqlite3.connect(config.db) as db:
        db.execute("PRAGMA journal_mode=DELETE")
    locking = sqlite3.connect(config.db, isolation_level=None)
    locking.execute("BEGIN EXCLUSIVE")
    listing = asyncio.create_task(page.listed())
    turns = 0
    while not listing.done():
        await asyncio.sleep(0.01)
        turns += 1
    rows, note = await listing
    assert turns > 10
    assert rows == []
    assert "locked by another program" in note
    await page.functions["page.greet"](origin(presets.load(presets.EMBEDDED)), REQUEST)
    locking.execute("ROLLBACK")
    locking.close()
    rows, _ = await page.listed()
    assert [row["id"] for row in rows] == ["r1"]


async def test_forty_searches_hold_up_no_visit_and_no_race(
    host: Host, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, real = threading.Event(), threading.Event(), History.summaries

    def summaries(history: History, **filters: str) -> object:
        begun.set()
        go_on.wait()
        return real(history, **filters)

    monkeypatch.setattr(History, "summaries", summaries)
    searches = [asyncio.create_task(page.listed(text="x" * 5)) for _ in range(40)]
    try:
        await until(begun.is_set)
        async with asyncio.timeout(30):
            await page.functions["page.greet"](origin(presets.load(presets.EMBEDDED)), REQUEST)
            comparison = await raced(host)
        assert comparison.unsaved is None
        assert not any(search.done() for search in searches)
    finally:
        go_on.set()
    await asyncio.gather(*searches)


async def test_starred_and_tagged_lines(host: Host, page: Page) -> None:
    for saved_id in ("r1", "r2", "r3"):
        saved(host.history, run(saved_id, status="done"))
    host.history.annotate("r1", star=True, tags="prod h200", note="")
    host.history.annotate("r2", star=False, tags="production", note="")
    assert host.history.tags() == ["h200", "prod", "production"]
    for filters, ids in (({"starred": True}, {"r1"}), ({"tag": "prod"}, {"r1"}), ({"tag": "production"}, {"r2"})):
        rows, _ = await page.listed(**filters)  # type: ignore[arg-type]
        assert {row["id"] for row in rows} == ids


async def test_too_many_searches_are_refused_with_a_sentence(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.ui.history.tab.READERS", Workers("a reader", 1, waiting=0))
    begun, go_on = threading.Event(), threading.Event()

    def values_of(history: History, column: str) -> list[str]:
        begun.set()
        go_on.wait()
        return []

    monkeypatch.setattr(History, "values", values_of)
    first = asyncio.create_task(page.listed())
    try:
        await until(begun.is_set)
        _, note = await page.listed()
        assert say("host.too_many_wait", waiting=0) in note
        assert "unavailable" not in note
        assert any(
            say("host.too_many_wait", waiting=0) in str(value)
            for value in await page.opened("20260101-000000-abcd")
        )
    finally:
        go_on.set()
    await first


async def test_a_search_that_is_too_long_is_refused(page: Page) -> None:
    _, note = await page.listed(text="x" * 100_000)
    assert "at most 1000" in note


async def test_what_a_short_search_leaves_out_is_said(page: Page) -> None:
    _, note = await page.listed(text="汉字")
    assert "fewer than 3" in note


async def test_every_reader_has_a_connection_of_its_own(host: Host) -> None:
    """SQLite's connections may not be shared between threads: eight readers beside a writer."""
    saved(host.history, run(status="done"))
    reads = [READERS.run(host.history.get, "r1") for _ in range(50)]
    writes = [READERS.run(host.history.begin, run(f"n{number}")) for number in range(20)]
    records = await asyncio.gather(*reads, *writes)
    assert all(record is not None for record in records[:50])
    assert len(host.history.summaries()) == 21


async def test_a_run_is_measured_again_and_says_whether_anything_has_changed(host: Host, page: Page) -> None:
    earlier = (await raced(host)).run
    await until(lambda: host.pool.holder is None)
    assert '"again": "Race again"' in str(await page.opened(earlier.id))
    await page.functions["history.actions.repeat"](SimpleNamespace(run=earlier.id), REQUEST)
    again = await finished(host.latest)  # type: ignore[arg-type]
    assert (again.run.earlier, again.run.settings) == (earlier.id, earlier.settings)
    await until(lambda: host.pool.holder is None)
    opened = str(await page.opened(again.id))
    assert f"?compare={earlier.id},{again.id}" in opened
    assert "Whether anything has changed since" in opened
    refused = await page.functions["history.actions.repeat"](SimpleNamespace(run="nowhere"), REQUEST)
    assert "nowhere" in str(refused)


async def test_only_who_started_it_may_change_it(host: Host, page: Page) -> None:
    """Where others are served; the host, on this machine alone, may change everything."""
    mine, other = "a" * 32, "b" * 32
    host.config = replace(host.config, host="0.0.0.0")
    comparison = host.comparison(SIDES, workload(4))
    await host.start(comparison, "a test", owner=mine)
    await finished(comparison)
    saved(host.history, run("r1", status="done"))
    for visitor, saved_id in ((other, comparison.id), (NOBODY, comparison.id), (mine, "r1"), (NOBODY, "r1")):
        assert not await page.changed(saved_id, visitor, star=True)
        assert not await page.changed(saved_id, visitor, deleted=True)
    assert not host.history.result(comparison.id).star
    assert await page.changed(comparison.id, mine, star=True, note="mine")
    # Whose it is not is offered no way to change it.
    for visitor, offered in ((mine, True), (other, False)):
        request = gr.Request(headers={"cookie": f"{NAME}={visitor}"})
        assert (
            any('"note": "mine"' in str(value) for value in await page.opened(comparison.id, request)) == offered
        )
    assert await page.changed(comparison.id, mine, deleted=True)
    assert await page.changed(comparison.id, "", deleted=False)
    assert await page.changed("r1", "", deleted=True)

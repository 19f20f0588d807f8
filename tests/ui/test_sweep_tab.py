"""What the What-if tab reads from the page, and what a preset fills in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
from support import sweep_run
from support.endpoints import at, attached
from support.fake_server import FakeServer, Steady
from support.sweep_cases import case, sweep_over
from support.waiting import until

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.sweep.knob_text import parsed_knob
from playground.domain.sweep.knobs import NAMES
from playground.domain.sweep.plan import SweepPlan
from playground.domain.sweep.record import Sweep
from playground.engine import devices
from playground.i18n import LOCALES, Locale, say
from playground.runs.host import Host
from playground.ui.compare import tab as compare_tab
from playground.ui.compare.tab import CompareTab
from playground.ui.live import feeds
from playground.ui.sweep import tab as sweep_tab
from playground.ui.sweep.actions import BadKnob, Sweeps
from playground.ui.sweep.painter import progress
from playground.ui.sweep.tab import SweepTab

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("unserved")]

PRESET = presets.load(presets.EMBEDDED)


@pytest.fixture
def tabs(config: Config) -> tuple[SweepTab, CompareTab, Host]:
    host = Host(config)
    with gr.Blocks():
        compare = compare_tab.build(host, devices.machine())
        with gr.Tab() as tab:
            sweep = sweep_tab.build(tab, PRESET)
    return sweep, compare, host


def filling(sweep: Sweep, locale: Locale) -> dict[Any, Any]:
    """In the place of the forms."""
    return {"filled": sweep.id}


def given(tabs: tuple[SweepTab, CompareTab, Host], **typed: Any) -> dict[Any, Any]:
    """What the page holds when it has just been opened, but for what was typed: name_1, values_2, minutes ..."""
    sweep, compare, _ = tabs
    page = {part: part.value for part in sweep.inputs() | compare.inputs()}
    for name, text in typed.items():
        field, _, number = name.partition("_")
        page[getattr(sweep.knobs[int(number) - 1], field) if number else getattr(sweep, field)] = text
    return page


def read(tabs: tuple[SweepTab, CompareTab, Host], **typed: Any) -> Any:
    return Sweeps(*tabs, filling)._read(given(tabs, **typed))


def test_it_starts_from_what_the_compare_tab_holds(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    made = read(tabs)
    assert [side.engine for side in made.case.sides] == [side.engine for side in PRESET.sides]
    assert (made.case.workload, made.preset) == (PRESET.workload, PRESET.name)
    page = given(tabs) | {tabs[1].prompt: "another"}
    changed = Sweeps(*tabs, filling)._read(page)
    assert (changed.case.workload.prompt, changed.preset) == ("another", None)


def test_two_knobs(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    label = PRESET.sides[1].label
    typed = {"name_1": "k", "side_1": label, "values_1": "1..3", "name_2": "concurrency", "values_2": "1,4"}
    made = read(tabs, **typed, minutes=5)
    assert [knob.key for knob in made.plan.knobs] == ["n-gram.k", "concurrency"]
    assert made.plan.budget_s == 300
    assert len(made.points) == 6


def test_a_search_may_turn_more_knobs(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    """Without one, what is left in the fields for it does not count."""
    third = {"name_3": "max_num_seqs", "values_3": "2,4"}
    assert len(read(tabs, **third).plan.knobs) == 1
    plan = read(tabs, **third, search=True).plan
    assert ([knob.name for knob in plan.knobs], plan.search) == (["k", "max_num_seqs"], True)
    with pytest.raises(BadKnob) as raised:
        read(tabs, search=True, name_2="concurrency", values_2="1,4")
    assert raised.value.error.message_id == "search.circumstance"


@pytest.mark.parametrize(
    ("number", "name", "side", "values", "said"),
    [
        (1, "nonsense", "", "1", "sweep.unknown_knob"),
        (2, "concurrency", "", "8..1", "sweep.bad_range"),
        (2, "concurrency", "", "", "sweep.bad_values"),
        (2, "concurrency", "Speculation off", "1", "sweep.workload_has_no_side"),
        (2, "", "", "1..3", "whatif.no_knob"),
        (1, "k", "nobody", "1", "sweep.unknown_side"),
        (1, "k", "", "0", "sweep.bad_value"),
        # No file of the host is read by naming it.
        (1, "prompts", "", "/etc/passwd", "whatif.only_sets"),
    ],
)
def test_what_is_wrong_belongs_to_its_field(
    tabs: tuple[SweepTab, CompareTab, Host], number: int, name: str, side: str, values: str, said: str
) -> None:
    with pytest.raises(BadKnob) as raised:
        read(tabs, **{f"name_{number}": name, f"side_{number}": side, f"values_{number}": values})
    assert raised.value.fields is tabs[0].knobs[number - 1]
    assert raised.value.error.message_id == said


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"name_1": "", "values_1": ""}, "whatif.no_knob"),
        ({"minutes": 0}, "cli.bad_minutes"),
        ({"minutes": None}, "cli.bad_minutes"),
        ({"name_2": "k", "values_2": "1"}, "settings.invalid"),
        ({"values_1": "1..60", "name_2": "concurrency", "values_2": "1..60"}, "sweep.too_many_points"),
    ],
)
def test_what_belongs_to_no_knob(
    tabs: tuple[SweepTab, CompareTab, Host], typed: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        read(tabs, **typed)
    assert raised.value.message_id == said


def test_a_preset_fills_the_fields(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    tab = tabs[0]
    plan = SweepPlan(knobs=(parsed_knob("B.enforce_eager=on,off,default"),), budget_s=600)
    filled = sweep_tab.filling(tab, PRESET.model_copy(update={"sweep": plan}))
    first, second = tab.knobs[:2]
    assert [filled[part] for part in (first.name, first.side)] == ["enforce_eager", "B"]
    assert [filled[part] for part in (second.name, second.side, second.values)] == ["", "", ""]
    assert filled[tab.minutes] == 10
    # As they are shown they are read again.
    assert parsed_knob(f"enforce_eager={filled[first.values]}").values == plan.knobs[0].values


def test_a_preset_without_a_sweep_empties_the_knobs(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    tab = tabs[0]
    filled = sweep_tab.filling(tab, PRESET.model_copy(update={"sweep": None}))
    assert {*filled} == {*tab.filled()} - {tab.minutes, tab.search}
    assert {*filled.values()} == {""}


def test_every_name_that_is_offered_can_be_varied() -> None:
    names = [name for _, name in sweep_tab.choices("zh-CN") if name]
    assert len(set(names)) == len(names)
    assert {*names} <= {*NAMES}


def sweep_of(server: FakeServer) -> Sweep:
    made = case(attached("a", at(server)), attached("b", at(server)), tokens=40, budget_s=0.1)
    return sweep_over(made, 1, 2, 3)


async def test_between_two_points_the_last_ones_phase_is_not_said(
    tabs: tuple[SweepTab, CompareTab, Host],
) -> None:
    """Its comparison has ended, and the next one is not made yet."""
    host = tabs[2]
    async with FakeServer(Steady()) as server:
        sweep = sweep_of(server)
        sweeping = host.sweep_run(sweep)
        point = sweep.points[0]
        sweeping.current = host.comparison(sweep.case.sides, sweep.case.workload, sweep.case.measurement)
        point.run = sweeping.current.run
        assert "concurrency = 1" in progress(sweeping, "en")
        sweeping.current.stop()
        assert sweeping.current.live.phase == "finished"
        for locale in LOCALES:
            said = progress(sweeping, locale)
            assert say("whatif.done", locale, done=0, count=3) in said
            assert "concurrency" not in said


async def frames(host: Host, sweep_id: str) -> list[Mapping[str, str]]:
    """What those who follow it get, until it ends."""
    sweep_run = host.followed_sweep(sweep_id)
    assert sweep_run is not None
    (points,) = feeds.of_sweep(host.config, sweep_run, "en")
    painted = []
    while not points.finished:
        painted.append(await points.changes())
        await asyncio.sleep(0.02)
    return [*painted, await points.whole()]


async def test_a_sweep_followed_stopped_and_gone_on_with(tabs: tuple[SweepTab, CompareTab, Host]) -> None:
    """Endpoints of our own stand for engines. The page paints what it has not painted yet."""
    tab, _, host = tabs
    page, other = Sweeps(*tabs, filling), Sweeps(*tabs, filling)
    async with FakeServer(Steady(rate=200)) as server:
        sweep = sweep_of(server)
        begun = await page._begin(sweep, None)
        assert begun[tab.sweep_id] == sweep.id
        assert begun[tab.stop]["visible"]
        # Somebody else is told who sweeps, and may watch.
        refused = await other.go_on(given(tabs) | {tab.unfinished: sweep.id}, None)
        assert refused[tab.message]
        assert refused[tab.watch]["visible"]
        following = asyncio.create_task(frames(host, sweep.id))
        await until(lambda: sweep.points[0].settled and sweep.points[1].run is not None, within_s=60)
        await page.stop(sweep.id, None)
        first, *_, last = await following
        assert "0 of 3" in first["progress"]
        assert last["progress"] == ""
        assert say("race.stopped") in last["outcome"]
        assert len(json.loads(last["points"])["rows"]) == 3
        ended = await page.ended(None)
        assert ended[tab.unfinished]["value"] == sweep.id
        assert ended[tab.start]["interactive"]
        # What is left, with the minutes that the page says.
        again = await page.go_on(given(tabs, minutes=2) | {tab.unfinished: sweep.id}, None)
        # The forms above its points are of it.
        assert again["filled"] == sweep.id
        assert again[tab.sweep_id] == sweep.id
        resumed = await frames(host, sweep.id)
    kept = host.history.sweep(sweep.id)
    assert kept is not None
    assert (kept.status, kept.remaining, kept.plan.budget_s) == ("done", 0, 120)
    assert say("race.done") in resumed[-1]["outcome"]
    assert not (await page.ended(None))[tab.unfinished]["visible"]
    # Charts and table are sent when a point has settled, not with every frame.
    assert len([parts for parts in resumed if "charts" in parts]) < len(resumed)
    await host.close()


async def test_a_schedule_is_measured_by_one_click(
    tabs: tuple[SweepTab, CompareTab, Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is offered once the sweep that proposes it has ended."""
    tab, _, host = tabs
    monkeypatch.setattr(sweep_run, "PER_DRAFT", 0.2)
    ended = sweep_run.made_sweep("quick.k=1,4", "concurrency=1,16")
    sweep_run.save(host.history, ended)
    page, begun = Sweeps(*tabs, filling), list[Sweep]()

    async def begin(sweep: Sweep, locale: Locale) -> dict[Any, Any]:
        begun.append(sweep)
        return {}

    monkeypatch.setattr(page, "_begin", begin)
    for followed, offered in ((ended, True), (sweep_run.made_sweep("quick.k=1,4"), False)):
        monkeypatch.setattr(host, "followed_sweep", lambda _, sweep=followed: SimpleNamespace(sweep=sweep))
        assert (await page.offer_schedule("id"))[tab.schedule]["visible"] == offered
    assert (await page.schedule({tab.sweep_id: ended.id, tab.minutes: 5}, None))["filled"] == begun[0].id
    assert begun[0].plan.budget_s == 300
    assert len(begun[0].case.sides) == 3
    assert (await page.schedule({tab.sweep_id: "gone", tab.minutes: 5}, None))[tab.message]

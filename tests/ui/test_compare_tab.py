"""The Compare tab's forms: what a preset fills in is that preset again when it is read."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput, ModelUnavailable
from playground.domain.record.run import Run
from playground.domain.sweep.plan import SweepPlan
from playground.engine import devices
from playground.engine.pool import Holder
from playground.i18n import LOCALES, say_message
from playground.models import inspection
from playground.presets import Preset
from playground.runs.host import Host
from playground.runs.sides.off_same_path import off_same_path
from playground.runs.sides.preflight import SideCheck
from playground.runs.sweep import new_sweep
from playground.ui.compare import side_count, side_form
from playground.ui.compare import tab as compare_tab
from playground.ui.compare.cards.events import CardEvents
from playground.ui.compare.tab import CompareTab
from playground.ui.history.actions import allowed_here
from playground.ui.shared.form_origin import as_preset, filled_from

Page = dict[Any, Any]


@pytest.fixture
def tab(host: Host, unserved: None) -> CompareTab:
    with gr.Blocks():
        return compare_tab.build(host, devices.machine())


def just_opened(tab: CompareTab) -> Page:
    return {component: getattr(component, "value", None) for component in tab.inputs()}


def take(page: Page, updates: Page) -> None:
    """As the page takes updates: those of a component's looks leave its value."""
    for component, update in updates.items():
        if not isinstance(update, dict):
            page[component] = update
        elif "value" in update:
            page[component] = update["value"]


def fill(tab: CompareTab, page: Page, preset: Preset) -> None:
    take(page, compare_tab.filling(tab, preset, "en"))


def test_a_preset_that_was_not_touched(tab: CompareTab, host: Host) -> None:
    given = just_opened(tab)
    for name in presets.names():
        preset = presets.load(name)
        fill(tab, given, preset)
        run = compare_tab._comparison(tab, host, given, "measured").run
        assert (run.preset, run.measurement) == (name, preset.measurement)
        assert [side.profile for side in run.sides] == [side.profile for side in preset.sides]
    given[tab.prompt] = "another one"
    assert compare_tab._comparison(tab, host, given, "race").run.preset is None


def test_sides_are_added_and_taken_away(tab: CompareTab, host: Host) -> None:
    """A new one is what the last one holds, under a name of its own."""
    given = just_opened(tab)
    preset = presets.load(presets.EMBEDDED)
    given[tab.sides[1].fields["k"]] = 7
    for _ in range(3):
        take(given, side_count.added(tab.count, tab.base, tab.sides, given))
    sides = compare_tab.read(tab, host, given)[0].sides
    labels = [preset.sides[0].label, "n-gram, k = 7", "n-gram, k = 7 (2)", "n-gram, k = 7 (3)"]
    assert [side.label for side in sides] == labels
    assert sides[1].engine == sides[2].engine == sides[3].engine != preset.sides[1].engine
    assert compare_tab._comparison(tab, host, given, "race").run.preset is None
    given[tab.sides[1].fields["k"]] = preset.sides[1].engine.speculation.num_speculative_tokens
    for _ in range(3):
        take(given, side_count.removed(tab.count, tab.base, tab.sides, given[tab.base]))
    assert compare_tab._comparison(tab, host, given, "race").run.preset == preset.name


def test_off_on_the_same_path_is_added(tab: CompareTab, host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """One click; where vLLM withholds nothing, or there is no room, it says so."""
    known = SimpleNamespace(version="0.26.0", device="cuda")
    monkeypatch.setattr("playground.engine.runtime.probe", lambda config, name: known)
    given = just_opened(tab)
    read = [side_form.read(side, given)[0] for side in tab.sides[:2]]
    extra = off_same_path(host.config, read)
    take(given, side_count._one_more(tab.count, tab.base, tab.sides, given, extra, typed=extra.label))
    added = compare_tab.read(tab, host, given)[0].sides[2]
    assert added.label == "Off, same path"
    assert added.engine.speculates is False
    assert added.engine.knobs.variables == {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    assert added.engine.knobs.async_scheduling is False
    for sides, why in (
        ([*read, extra], "path.same_already"),
        ([read[0], read[0]], "path.none_speculates"),
        ([*read, *read], "path.no_room"),
    ):
        with pytest.raises(InvalidInput) as refused:
            off_same_path(host.config, sides)
        assert refused.value.message_id == why
        assert all(say_message(refused.value, locale) for locale in LOCALES)


@pytest.mark.parametrize("mode", ["race", "measured"])
def test_a_run_is_loaded_as_it_was(tab: CompareTab, host: Host, mode: Any) -> None:
    """Unchanged it is the preset again; changed it is what was run, with as many sides."""
    given = just_opened(tab)
    fill(tab, given, presets.load("four-row-table"))
    for prompt, name in ((given[tab.prompt], "four-row-table"), ("another one", None)):
        given[tab.prompt] = prompt
        run = compare_tab._comparison(tab, host, given, mode).run
        assert run.preset == name
        if name is None:
            # What the form has no field for.
            sampling = run.workload.sampling.model_copy(update={"min_p": 0.1, "stop": ("END",)})
            run.workload = run.workload.model_copy(update={"sampling": sampling})
        host.history.begin(run)
        page = just_opened(tab)
        stored = host.history.settings(run.id)
        assert stored is not None
        fill(tab, page, as_preset(stored))
        again = compare_tab._comparison(tab, host, page, mode).run
        assert (again.sides, again.workload, again.measurement) == (run.sides, run.workload, run.measurement)
        assert again.preset == name


def test_a_runtime_that_is_gone_is_replaced_and_told(config: Config) -> None:
    """The page could neither show nor change it."""
    preset = presets.load(presets.EMBEDDED)
    engine = preset.sides[1].engine.model_copy(update={"runtime": "old"})
    sides = (preset.sides[0], preset.sides[1].model_copy(update={"engine": engine}))
    allowed = allowed_here(config, preset.model_copy(update={"sides": sides}))
    assert allowed.sides == preset.sides
    assert [note.message_id for note in allowed.notes] == ["kept.no_runtime"]


@pytest.mark.parametrize(("count", "sides"), [(-1, 2), (3, 3), (10**9, 4)])
def test_the_browser_s_count_of_sides_is_not_trusted(host: Host, count: int, sides: int) -> None:
    assert len(filled_from(host, json.dumps([presets.EMBEDDED, count])).sides) == sides


def test_a_sweep_is_loaded_with_what_it_varies() -> None:
    preset = presets.load("smollm2-k-1-to-10-ngram")
    assert preset.sweep is not None
    assert as_preset(new_sweep(preset.sweep, preset.case, preset.name)) == preset
    fewer = preset.sweep.model_copy(update={"budget_s": 60.0})
    loaded = as_preset(new_sweep(fewer, preset.case, None))
    assert (loaded.case, loaded.sweep, loaded.name) == (preset.case, fewer, loaded.title.en.split()[-1])


def test_a_sweep_s_labels_leave_out_what_it_varies(tab: CompareTab, host: Host) -> None:
    page = just_opened(tab)
    page[tab.sides[1].fields["k"]] = 3
    case, _ = compare_tab.read(tab, host, page)
    assert case.sides[1].label == "n-gram, k = 3"
    plan = SweepPlan.model_validate({"knobs": [{"name": "k", "values": [1, 2], "side": "n-gram, k = 3"}]})
    sweep = new_sweep(plan, case)
    assert [side.label for side in sweep.case.sides] == ["Speculation off", "n-gram"]
    assert [knob.key for knob in sweep.plan.knobs] == ["n-gram.k"]


def test_an_error_is_at_its_field_whatever_the_side_is_called(tab: CompareTab, host: Host) -> None:
    page = just_opened(tab)
    fields = tab.sides[1].fields
    page[fields["k"]] = 0
    with pytest.raises(InvalidInput) as refused:
        compare_tab.read(tab, host, page)
    place = compare_tab._place_of(tab, host, refused.value, page)
    assert place is not None
    assert place.field.startswith("#side1-k")
    page[fields["k"]] = 3
    later = InvalidInput("settings.flag_missing", side="n-gram, k = 3", key="knobs.dtype")
    place = compare_tab._place_of(tab, host, later, page)
    assert place is not None
    assert place.field.startswith("#side1-knobs")


async def test_the_cards_follow_the_form_and_check_themselves(
    tab: CompareTab, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check is not repeated for the same settings, asks no hub, and is left out during a run."""
    asked: list[bool] = []

    def examine(config: Config, run: Run, *, ask_hub: bool) -> list[SideCheck]:
        asked.append(ask_hub)
        return [SideCheck(side.label, None, None, (), None) for side in run.sides]

    monkeypatch.setattr("playground.runs.sides.preflight.examine", examine)
    events = CardEvents(
        tab.cards,
        tab.sides,
        tab.base,
        tab.controls,
        host,
        lambda page: compare_tab._comparison(tab, host, page, "race"),
        lambda page: compare_tab.read(tab, host, page)[0],
    )
    below = compare_tab._comparison(tab, host, just_opened(tab), "race")
    below.refuse(RuntimeError())
    host.latest = below
    page = just_opened(tab) | {tab.controls.run_id: below.id}
    request = gr.Request(headers={"accept-language": "en"})
    fields = tab.sides[1].fields
    assert (await events.follow(page, request))[tab.controls.outdated] == ""
    page[fields["k"]] = 3
    assert "settings before" in (await events.follow(page, request))[tab.controls.outdated]
    update = await events.follow(page, request)
    assert "n-gram, k = 3" in update[tab.cards]
    assert update[fields["label"]]["placeholder"] == "n-gram, k = 3"
    for _ in range(2):
        checked = await events.check(page, request)
        assert "data-unchecked" not in checked
        assert "The engines take about 60 s to start" in checked
    page[fields["k"]] = 4
    async with host.pool.lease(Holder("another", "a test", "12:00:00", "other"), wait=False):
        assert "not checked during a run" in await events.check(page, request)
    assert asked == [False]
    page[fields["k"]] = 0
    assert "Draft tokens (k) = 0" in (await events.follow(page, request))[tab.cards]


def test_a_model_that_is_not_here_is_not_asked_for(config: Config) -> None:
    with pytest.raises(ModelUnavailable) as unknown:
        inspection.read(config, "org/elsewhere", tokens=False, ask_hub=False)
    assert unknown.value.message_id == "preflight.not_here"

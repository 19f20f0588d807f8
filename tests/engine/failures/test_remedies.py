"""What to change after a failure: from a stored problem to the field of a form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from playground import presets
from playground.cli.console import remedy_lines
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel, Ngram
from playground.domain.spec.workload import Workload
from playground.engine.failures.causes import BY_NAME
from playground.engine.failures.remedies import Remedy, change_label, remedy_of
from playground.i18n import LOCALES, Locale, say, say_message
from playground.presets import Side
from playground.report.documents.comparison import compare_document
from playground.store import History
from playground.ui.compare import side_form
from playground.ui.compare.remedies import edits
from playground.ui.shared import view

pytestmark = pytest.mark.usefixtures("unserved")

DRAFTED = EngineSettings(
    target="t",
    speculation=DraftModel(model="d", num_speculative_tokens=3, max_model_len=100),
    knobs=Knobs(max_num_seqs=8, enforce_eager=True),
)
NGRAM = EngineSettings(target="t", speculation=Ngram(num_speculative_tokens=3, method="ngram_gpu"))


def failed(message_id: str, settings: EngineSettings, **params: object) -> Remedy:
    remedy = remedy_of(SideRecord("A", settings, problem=Message(message_id, params)), {})
    assert remedy is not None
    return remedy


def out_of_memory(stage: str, settings: EngineSettings, **figures: object) -> list[Change]:
    return list(failed("failure.gpu_memory", settings, stage=Message(f"stage.{stage}"), **figures).changes)


def test_no_problem_no_remedy() -> None:
    assert remedy_of(SideRecord("A", DRAFTED), {}) is None
    assert remedy_of(SideRecord("A", DRAFTED, problem=Message("stream.cut")), {}) is None


def test_memory_of_a_gpu_by_stage() -> None:
    """What took the last of it differs, and so does what helps."""
    figures = {"max_num_batched_tokens": 8192, "gpu_memory_utilization": 0.9}
    assert out_of_memory("loading_weights", DRAFTED) == [Change("speculation", "off")]
    assert out_of_memory("loading_weights", NGRAM) == []
    assert out_of_memory("profiling", DRAFTED, **figures) == [
        Change("knobs.max_num_batched_tokens", 4096),
        Change("knobs.max_num_seqs", 4),
        Change("speculation", "off"),
    ]
    # Graphs can be done without, but DRAFTED does already.
    assert out_of_memory("warming_up", DRAFTED, **figures) == [
        Change("knobs.gpu_memory_utilization", 0.85),
        Change("knobs.max_num_seqs", 4),
    ]
    assert Change("knobs.enforce_eager", True) in out_of_memory("warming_up", NGRAM, **figures)
    assert out_of_memory("answering", NGRAM, **figures) == [
        Change("knobs.gpu_memory_utilization", 0.85),
        Change("knobs.max_num_batched_tokens", 4096),
    ]


def test_no_share_of_a_full_card() -> None:
    assert failed("failure.gpu_busy", DRAFTED, free=0.5, total=80.0, share=0.9, wanted=72.0).changes == ()


def test_more_of_a_card_only_where_less_was_asked_for() -> None:
    """Engines that share a card get their parts from the playground: one part can't just be made larger."""
    little = EngineSettings(target="t", knobs=Knobs(gpu_memory_utilization=0.3))
    assert failed("failure.no_kv_memory", little).changes == (Change("knobs.gpu_memory_utilization", 0.61),)
    assert failed("failure.no_kv_memory", EngineSettings(target="t"), gpu_memory_utilization=0.45).changes == ()


def test_remedies_do_not_lead_back() -> None:
    """What is free was asked for, and is too little for a cache: the share that was refused is no way out."""
    asked = DRAFTED.model_copy(update={"knobs": Knobs(max_num_seqs=8, gpu_memory_utilization=0.9)})
    (lower,) = failed("failure.gpu_busy", asked, free=40.0, total=80.0, share=0.9, wanted=72.0).changes
    assert lower == Change("knobs.gpu_memory_utilization", 0.5)
    assert failed("failure.no_kv_memory", lower.apply(asked)).changes == (
        Change("speculation", "off"),
        Change("knobs.max_num_seqs", 4),
        Change("knobs.gpu_memory_utilization", 0.71),
    )


def test_a_start_that_hung() -> None:
    params = {"seconds": 9.0, "in_stage_s": 5.0, "log": "e.log"}
    compiling = failed("failure.timeout", NGRAM, stage=Message("stage.compiling"), **params)
    assert compiling.changes == (Change("knobs.enforce_eager", True),)
    assert failed("failure.timeout", NGRAM, stage=Message("stage.loading_weights"), **params).changes == ()


def test_a_draft_that_cannot_be_had() -> None:
    assert failed("model.gated", DRAFTED, name="d").changes == (Change("speculation", "off"),)
    assert remedy_of(SideRecord("A", DRAFTED, problem=Message("model.gated", {"name": "t"})), {}) is None


@pytest.mark.parametrize("settings", [DRAFTED, NGRAM, EngineSettings(target="t")])
def test_a_record_without_figures(settings: EngineSettings) -> None:
    """Older versions stored only the message: all of it can still be said, and nothing is made up."""
    for name in sorted(BY_NAME.keys() - {"timeout"}):
        remedy = failed(f"failure.{name}", settings, code=1, log="e.log")
        for locale in LOCALES:
            assert say_message(Message(f"failure.{name}", {"code": 1, "log": "e.log"}), locale), name
            assert say_message(remedy.advice, locale), name
            assert all(say_message(change_label(change), locale) for change in remedy.changes), name
        assert all(change.apply(settings) != settings for change in remedy.changes), name


def failed_run() -> Run:
    params = {"asked": 9, "limit": 8192.0, "stage": Message("stage.configuring"), "log": "e.log"}
    side = SideRecord("B", DRAFTED, problem=Message("failure.context_too_long", params), log_tail=["last"])
    return Run("r", "2026-11-30T00:00:00", "race", Workload(prompt="p"), [side], status="failed")


def test_a_run_from_the_history_has_its_remedy(tmp_path: Path) -> None:
    history, run = History(tmp_path / "history.db"), failed_run()
    history.begin(run)
    history.finish(run)
    stored = history.get("r")
    assert stored is not None
    assert remedy_of(stored.sides[0], stored.machine) == remedy_of(run.sides[0], run.machine)


@pytest.mark.parametrize("locale", LOCALES)
def test_what_the_history_shows_of_a_run_that_never_began(locale: Locale) -> None:
    """What to change as a sentence, and no chart without anything to draw."""
    for measurement in (None, presets.load(presets.EMBEDDED).measurement):
        run = replace(failed_run(), mode="measured" if measurement else "race", measurement=measurement)
        panes, charts = (
            json.loads(text)
            for text in (
                view.painter(Config(), run, locale).paint(whole=True),
                view.Drawer(run, locale).draw(),
            )
        )
        assert charts == {}
        assert say("chart.none", locale) in panes["note"]
        [change] = panes["sides"][0]["problem"]["changes"]
        assert change in panes["sides"][0]["problem"]["elsewhere"]


def test_what_the_command_line_says() -> None:
    said = remedy_lines(failed_run())
    assert said == [
        "B: Set max_model_len to 8192 or less, or leave it empty.",
        "  - Set max_model_len to 8192",
    ]
    assert compare_document(failed_run())["sides"][0]["remedy"] == {
        "advice": said[0].removeprefix("B: "),
        "changes": [{"key": "knobs.max_model_len", "value": 8192, "label": "Set max_model_len to 8192"}],
    }


# The form


def shown(side: Side) -> tuple[side_form.SideForm, dict[Any, Any]]:
    """A form that shows this side, and what its components hold."""
    with gr.Blocks():
        made = side_form.build(Config(), 0, side, visible=True)
    return made, {part: part.value for part in made.fields.values()}


def pressed(settings: EngineSettings, change: Change) -> EngineSettings:
    """What the form says after one press of the button."""
    made, given = shown(Side(label="A", engine=settings))
    for part, update in edits(made, given, change).items():
        value = update.get("value", given.get(part)) if isinstance(update, dict) else update
        given[part] = value
    read = side_form.read(made, given)[0].engine
    assert isinstance(read, EngineSettings)
    return read


@pytest.mark.parametrize(
    ("settings", "change"),
    [
        (DRAFTED, Change("knobs.max_model_len", 4096)),
        (DRAFTED, Change("knobs.max_num_seqs", None)),
        (DRAFTED, Change("knobs.enforce_eager", False)),
        (DRAFTED, Change("speculation", "off")),
        (DRAFTED, Change("speculation.max_model_len", 64)),
        (DRAFTED, Change("speculation.max_model_len", None)),
        (DRAFTED, Change("speculation.use_heterogeneous_vocab", True)),
        (DRAFTED, Change("speculation.num_speculative_tokens", 2)),
        (DRAFTED, Change("speculation.model", "smaller")),
        (NGRAM, Change("speculation.method", "ngram")),
        (NGRAM, Change("speculation.prompt_lookup_max", 4)),
    ],
)
def test_a_button_changes_its_field_and_no_other(settings: EngineSettings, change: Change) -> None:
    assert pressed(settings, change) == change.apply(settings)


def test_what_was_typed_elsewhere_stays() -> None:
    made, given = shown(Side(label="A", engine=DRAFTED))
    given[made.fields["target"]] = "typed"
    given[made.fields["more"]] = "not JSON yet"
    changed = edits(made, given, Change("knobs.max_model_len", 4096))
    assert set(changed) == {made.fields["knobs"], made.engine}
    with pytest.raises(InvalidInput):
        edits(made, given, Change("speculation.max_model_len", 4))

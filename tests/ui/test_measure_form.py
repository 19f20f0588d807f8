"""The form of a measurement: what it shows is read back; a mistake names its field; no other file is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.limits import Limits
from playground.domain.message import Message
from playground.domain.spec.load_profile import RampProfile, RateProfile
from playground.domain.spec.measurement import Harness, Measurement, SyntheticPrompts
from playground.i18n import LOCALES, Locale, say_message
from playground.presets import Preset
from playground.prompts.formats import line
from playground.ui.compare import measure_form, measure_values
from playground.ui.compare.measure_form import look_at_upload
from playground.ui.compare.measure_values import measurement_of, values_of
from playground.ui.shared.labels import I18N


@pytest.fixture
def preset() -> Preset:
    return presets.load(presets.EMBEDDED)


@pytest.fixture
def uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "uploads"
    folder.mkdir()
    monkeypatch.setattr(measure_values, "get_upload_folder", lambda: str(folder))
    return folder


def filled(preset: Preset, **changed: object) -> dict[str, Any]:
    held = values_of(preset.measurement, preset.workload.objective)
    assert changed.keys() <= held.keys()
    return held | changed


def with_measurement(preset: Preset, **given: Any) -> Preset:
    return preset.model_copy(update={"measurement": Measurement.model_validate(given)})


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_survives_the_form(name: str) -> None:
    preset = presets.load(name)
    read = measurement_of(filled(preset), preset)
    assert read == (preset.measurement, preset.workload.objective)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"prompts": "chat", "profile": {"kind": "waves", "concurrency": 8, "requests": 32}},
        {"prompts": {"input_tokens": 64, "count": 5}, "profile": {"kind": "ramp", "last": 9, "requests": 32}},
        {"prompts": "/somewhere/own.txt", "profile": {"kind": "rate", "requests_per_s": 0.3, "duration_s": 12.5}},
        {"limits": {"ttft_ms": 200.5, "e2el_ms": 4000}, "check_outputs": False, "price_per_hour": 2.49},
        {"target_width": 0.033, "max_rounds": 7, "budget_s": 100},
        {
            "profile": {
                "kind": "rate",
                "requests_per_s": 3,
                "arrivals": "constant",
                "concurrency": 9,
                "requests": 4,
            }
        },
    ],
)
def test_nothing_is_lost(preset: Preset, given: dict[str, Any]) -> None:
    changed = with_measurement(preset, **given)
    measurement, _ = measurement_of(filled(changed), changed)
    assert measurement == changed.measurement


def test_only_the_fields_of_the_chosen_profile_count(preset: Preset) -> None:
    """Also when others hold something that could not be used."""
    text = filled(preset, kind="ramp", first="2", last="4", requests="9", concurrency="none", requests_per_s="x")
    measurement, _ = measurement_of(text, preset)
    assert measurement.profile == RampProfile(first=2, last=4, requests=9)
    text = filled(preset, kind="rate", requests_per_s=" 1.5 ", arrivals="constant", requests="", duration_s="3")
    measurement, _ = measurement_of(text, preset)
    assert measurement.profile == RateProfile(requests_per_s=1.5, arrivals="constant", duration_s=3, concurrency=1)


def test_synthetic(preset: Preset) -> None:
    measurement, _ = measurement_of(filled(preset, prompts="synthetic", input_tokens="90", count="3"), preset)
    assert measurement.prompts == SyntheticPrompts(input_tokens=90, count=3)


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({"concurrency": "many"}, "Requests at once"),
        ({"concurrency": "0"}, "Requests at once"),
        ({"requests": "-1"}, "Requests per turn"),
        ({"ttft_ms": "fast"}, "TTFT limit, ms"),
        ({"max_rounds": "2"}, "Rounds, at most"),
        ({"width": "0.01"}, "Precision, ± %"),
        ({"width": "nan"}, "Precision, ± %"),
        ({"budget": ""}, "Minutes, at most"),
        ({"prompts": "synthetic", "input_tokens": "0"}, "Input tokens"),
        ({"kind": "rate", "requests_per_s": "-3"}, "Requests per second"),
        ({"kind": "rate", "arrivals": "sometimes"}, "Arrivals"),
    ],
)
def test_a_mistake_names_its_field(preset: Preset, changed: dict[str, str], label: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        measurement_of(filled(preset, **changed), preset)
    assert label in say_message(caught.value)
    assert say_message(caught.value, "zh-CN") != say_message(caught.value)


@pytest.mark.parametrize(
    ("changed", "message_id"),
    [
        ({"requests": "", "duration_s": ""}, "measure.needs_end"),
        ({"kind": "ramp", "requests": "", "duration_s": "9"}, "measure.ramp_needs_requests"),
        ({"prompts": "file"}, "measure.no_upload"),
    ],
)
def test_what_is_missing_is_said(preset: Preset, changed: dict[str, str], message_id: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        measurement_of(filled(preset, **changed), preset)
    assert caught.value.message_id == message_id


def test_an_uploaded_file(preset: Preset, uploads: Path) -> None:
    path = uploads / "mine.txt"
    path.write_text("one\ntwo\n")
    assert look_at_upload(str(path), Limits(), "en") == (str(path), '<p role="status">mine.txt: 2 prompts</p>')
    measurement, _ = measurement_of(filled(preset, prompts="file", file=str(path)), preset)
    assert measurement.prompts == str(path)


@pytest.mark.parametrize("locale", LOCALES)
def test_what_is_skipped_in_an_upload_is_said_at_once(uploads: Path, locale: Locale) -> None:
    path = uploads / "mine.jsonl"
    path.write_text('{"prompt": "one"}\n{"prompt": " "}\n')
    _, text = look_at_upload(str(path), Limits(), locale)
    skipped = Message("prompts.skipped", {"count": 1, "why": Message("prompts.blank"), "place": line(2)})
    assert say_message(skipped, locale) in text


@pytest.mark.parametrize("locale", LOCALES)
def test_a_bad_upload_is_said(uploads: Path, locale: Locale) -> None:
    path = uploads / "bad.csv"
    path.write_text("title\nhello\n")
    read, text = look_at_upload(str(path), Limits(), locale)
    assert not read
    assert "title" in text


def test_no_other_file_of_the_machine_is_read(preset: Preset, uploads: Path, tmp_path: Path) -> None:
    """A visitor writes the path: neither a file outside, nor a way out of the folder, nor a link."""
    secret = tmp_path / "secret.txt"
    secret.write_text("key\n")
    (uploads / "link.txt").symlink_to(secret)
    for path in (str(secret), f"{uploads}/../secret.txt", str(uploads / "link.txt")):
        assert not look_at_upload(path, Limits(), "en")[0]
        with pytest.raises(InvalidInput):
            measurement_of(filled(preset, prompts="file", file=path), preset)


NO_FILE: list[Any] = ["", [], None, {}, {"path": ""}, 5, "a\0.txt", "\ud83d"]


@pytest.mark.parametrize("path", NO_FILE, ids=repr)
def test_what_is_no_path_is_no_file(uploads: Path, path: Any) -> None:
    read, text = look_at_upload(path, Limits(), "en")
    assert not read
    assert say_message(InvalidInput("measure.no_upload")) in text


def test_every_field_and_choice_has_a_text(preset: Preset) -> None:
    with gr.Blocks():
        form = measure_form.build(preset)
    labels = [str(field.label) for name, field in form.fields.items() if name != "file"]
    labels += [name for field in form.fields.values() for name, _ in getattr(field, "choices", [])]
    keys = [json.loads(label.removeprefix("__i18n__"))["key"] for label in labels]
    assert len({*keys}) == len(form.fields) - 1 + sum(map(len, measure_values.CHOICES.values()))
    for locale in LOCALES:
        assert all(I18N.translations[locale][key] for key in keys)


def test_a_preset_shows_its_fields(preset: Preset) -> None:
    """Only those of its prompts and its load."""
    with gr.Blocks():
        form = measure_form.build(preset)
    changed = with_measurement(
        preset,
        prompts={"input_tokens": 64, "count": 5},
        profile={"kind": "rate", "requests_per_s": 0.5, "requests": 4},
    )
    updates = measure_form.updates(form, changed)
    shown = {
        name
        for name, field in form.fields.items()
        if isinstance(updates[field], dict) and updates[field]["visible"]
    }
    assert shown == {"input_tokens", "count", "requests_per_s", "arrivals", "concurrency"}
    assert updates[form.fields["requests_per_s"]]["value"] == 0.5
    assert not updates[form.upload]["visible"]


@pytest.fixture
def harness_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_values.harness, "installed", lambda: "/bin/lm_eval")


def test_tasks_of_the_harness(preset: Preset, harness_here: None) -> None:
    read, _ = measurement_of(filled(preset, tasks="gsm8k, longproc_0.5k", limit=""), preset)
    assert read.harness == Harness(tasks=("gsm8k", "longproc_0.5k"))
    shown = with_measurement(preset, harness={"tasks": ["gsm8k"], "limit": 7})
    assert measurement_of(filled(shown), shown)[0].harness == Harness(tasks=("gsm8k",), limit=7)
    assert measurement_of(filled(preset), preset)[0].harness is None


@pytest.mark.parametrize(
    ("typed", "said", "key"),
    [
        ({"tasks": "/etc/passwd"}, "harness.only_names", "tasks"),
        ({"tasks": "gsm8k, ../own.yaml"}, "harness.only_names", "tasks"),
        ({"tasks": "own.yaml"}, "harness.only_names", "tasks"),
        ({"tasks": "-x"}, "harness.only_names", "tasks"),
        ({"tasks": "gsm8k", "limit": "0"}, "measure.bad_field", "limit"),
    ],
)
def test_what_no_visitor_may_ask_of_it(
    preset: Preset, harness_here: None, typed: dict[str, str], said: str, key: str
) -> None:
    with pytest.raises(InvalidInput) as raised:
        measurement_of(filled(preset, **typed), preset)
    assert (raised.value.message_id, raised.value.params["key"]) == (said, key)


def test_where_it_is_not_installed_the_page_asks_it_nothing(
    preset: Preset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_values.harness, "installed", lambda: None)
    shown = with_measurement(preset, harness={"tasks": ["gsm8k"]})
    assert measurement_of(filled(shown), shown)[0].harness is None


def test_a_run_of_the_history_opens_no_file(preset: Preset, uploads: Path, harness_here: None) -> None:
    """Whoever ran it from the command line could name any; whoever loads it may not read them."""
    given = {"prompts": "/somewhere/own.txt", "harness": {"tasks": ["/somewhere/own.yaml"]}}
    kept = with_measurement(preset, **given).model_copy(update={"name": "20261130-120000-abcd"})
    with pytest.raises(InvalidInput) as raised:
        measurement_of(filled(kept), kept)
    assert raised.value.message_id == "measure.no_upload"
    with pytest.raises(InvalidInput) as raised:
        measurement_of(filled(kept, prompts="own"), kept)
    assert raised.value.message_id == "harness.only_names"

"""The sides' cards: what they show, what differs, what the check said."""

from __future__ import annotations

import re

import pytest

from playground import presets
from playground.domain.errors import InvalidInput
from playground.domain.fit.issue import FitIssue
from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import Knobs
from playground.i18n import LOCALES, Locale, say
from playground.runs.sides.preflight import SideCheck
from playground.ui.compare.cards import Checked, cards
from playground.ui.shared.field_names import with_vllm_name
from playground.ui.shared.message import alert

SIDES = presets.load(presets.EMBEDDED).sides


def text(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", html))


@pytest.mark.parametrize("locale", LOCALES)
def test_what_differs_is_marked_and_said(locale: Locale) -> None:
    html = cards(SIDES, SIDES, locale)
    assert len(re.findall('class="differs', html)) == 3
    assert f"{say('card.off', locale)} | ngram" in re.sub(r"\s*\|\s*", " | ", text(html))
    assert "data-unchecked" in html


def test_sides_that_are_alike() -> None:
    html = cards([SIDES[0], SIDES[0]], [SIDES[0], SIDES[0]], "en")
    assert "What differs: nothing." in text(html)
    assert 'class="differs' not in html


def test_a_side_that_cannot_be_read_keeps_its_name_and_colour() -> None:
    html = cards([SIDES[0], InvalidInput("whatif.no_knob")], SIDES, "en")
    assert html.count("--side:") == 2
    assert SIDES[1].label in text(html)
    assert say("card.checking", "en") not in text(html)


def test_a_difference_that_came_by_itself_is_pointed_at() -> None:
    engine = Change("knobs.dtype", None).apply(SIDES[1].engine)
    html = cards([SIDES[0], SIDES[1].model_copy(update={"engine": engine})], SIDES, "en")
    assert "Number format: float32 | default" in re.sub(r"\s*\|\s*", " | ", text(html)).replace(" ;", ";")
    assert "Only one side still has a value for: Number format." in text(html)
    assert "Only one side" not in cards(SIDES, SIDES, "en")


@pytest.mark.parametrize(("level", "kind"), [(None, "unknown"), ("blocking", "not")])
def test_what_the_check_said(level: str | None, kind: str) -> None:
    issues = (FitIssue(Message("preflight.attached"), "blocking"),) if level else ()
    check = SideCheck("A", None, None, issues, None)
    html = cards(SIDES, SIDES, "en", Checked([check, check]))
    assert html.count(f'class="check {kind}"') == 2
    assert "data-unchecked" not in html
    failed = cards(SIDES, SIDES, "en", Checked(error=InvalidInput("whatif.no_knob")))
    assert failed.count("can&#x27;t be checked") == 2
    busy = cards(SIDES, SIDES, "en", Checked())
    assert busy.count("not checked during a run") == 2
    # The page tries again.
    assert "data-busy" in busy
    assert "data-busy" not in html + failed


def test_an_error_is_in_the_place_of_its_card_and_calls_the_field_as_the_form_does() -> None:
    error = InvalidInput("settings.missing_key", where="B", key="knobs.max_num_seqs")
    html = cards([SIDES[0], error], SIDES, "en")
    assert "B: Sequences at once (max_num_seqs) is missing." in text(html)
    assert "data-unchecked" not in html
    assert "最长序列 (max_model_len)" in alert(
        InvalidInput("settings.missing_key", where="B", key="knobs.max_model_len"), "zh-CN"
    )


@pytest.mark.parametrize("locale", LOCALES)
def test_every_knob_has_a_name(locale: Locale) -> None:
    names = {with_vllm_name(f"knobs.{knob}", locale) for knob in Knobs.model_fields}
    assert len(names) == len(Knobs.model_fields)
    assert all(name.endswith(")") for name in names)

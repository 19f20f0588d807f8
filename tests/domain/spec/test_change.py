"""One setting changed."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import Ngram, SpeculationOff

SIDE = EngineSettings(target="m", speculation=Ngram(num_speculative_tokens=3), knobs=Knobs(max_num_seqs=8))


def test_a_knob_is_replaced_and_the_rest_stays() -> None:
    changed = Change("knobs.max_model_len", 512).apply(SIDE)
    assert changed == SIDE.model_copy(update={"knobs": Knobs(max_num_seqs=8, max_model_len=512)})


def test_none_gives_the_engine_its_default_back() -> None:
    assert Change("knobs.max_num_seqs", None).apply(SIDE).knobs == Knobs()


def test_a_field_of_the_speculation() -> None:
    changed = Change("speculation.num_speculative_tokens", 7).apply(SIDE)
    assert changed.speculation == Ngram(num_speculative_tokens=7)


def test_speculation_off_whatever_it_was() -> None:
    assert Change("speculation", "off").apply(SIDE).speculation == SpeculationOff()


@pytest.mark.parametrize(
    ("key", "value"),
    [("knobs.max_num_seqs", 0), ("knobs.nonsense", 1), ("speculation.num_speculative_tokens", "many")],
)
def test_what_the_settings_do_not_allow(key: str, value: int | str) -> None:
    with pytest.raises(ValidationError):
        Change(key, value).apply(SIDE)

"""Knobs and values -> points, in an order that restarts few engines."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from playground.domain.errors import InvalidInput
from playground.domain.spec.case import Case, Side
from playground.domain.spec.change import Value
from playground.domain.spec.load_profile import ConcurrencyProfile, WavesProfile
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel, Ngram
from playground.domain.spec.workload import Sampling, Workload
from playground.domain.sweep import knob_text
from playground.domain.sweep.knob_text import parsed_knob
from playground.domain.sweep.knobs import NAMES, changed
from playground.domain.sweep.order import engine_starts, engines_of, ordered
from playground.domain.sweep.plan import MOST_VALUES, Knob, SweepPlan, points_of

OFF = Side(label="off", engine=EngineSettings(target="m"))
NGRAM = Side(label="ngram", engine=EngineSettings(target="m", speculation=Ngram(num_speculative_tokens=5)))
CASE = Case(
    sides=(OFF, NGRAM),
    workload=Workload(prompt="x", sampling=Sampling(max_tokens=8)),
    measurement=Measurement(profile=ConcurrencyProfile(concurrency=2, requests=8)),
)


def engine(case: Case, index: int) -> EngineSettings:
    found = case.sides[index].engine
    assert isinstance(found, EngineSettings)
    return found


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("k=1", "k", (1,)),
        ("k=1..4", "k", (1, 2, 3, 4)),
        ("ngram.k=1,3..5", "ngram.k", (1, 3, 4, 5)),
        ("max_num_seqs=16..64+16", "max_num_seqs", (16, 32, 48, 64)),
        ("concurrency=1..64*2", "concurrency", (1, 2, 4, 8, 16, 32, 64)),
        ("temperature=0..1+0.5", "temperature", (0, 0.5, 1.0)),
        ("temperature=0.1..0.4+0.1", "temperature", (0.1, 0.2, 0.3, 0.4)),
        ("enforce_eager=on,off", "enforce_eager", (True, False)),
        ("max_num_seqs=default,64", "max_num_seqs", (None, 64)),
        ("dtype=float32, bfloat16", "dtype", ("float32", "bfloat16")),
        ("k=3,3,1..3", "k", (3, 1, 2)),
        ("n-gram, k = 5.k=2", "n-gram, k = 5.k", (2,)),
        ("k=5.seed=1,2", "k=5.seed", (1, 2)),
        ("target=a=b,c", "target", ("a=b", "c")),
        ("B.draft=/models/k=5/m", "B.draft", ("/models/k=5/m",)),
    ],
)
def test_values(text: str, key: str, values: tuple[Value, ...]) -> None:
    knob = parsed_knob(text)
    assert (knob.key, knob.values) == (key, values)
    assert [type(value) for value in knob.values] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("text", "message_id"),
    [
        ("k", "sweep.bad_knob"),
        ("=1", "sweep.bad_knob"),
        ("side.=1", "sweep.bad_knob"),
        ("k=", "sweep.bad_values"),
        ("k=,", "sweep.bad_values"),
        (f"k=1..{MOST_VALUES + 1}", "sweep.bad_values"),
        ("k=1..1000000000", "sweep.bad_values"),
        ("k=5..1", "sweep.bad_range"),
        ("k=1..5+0", "sweep.bad_range"),
        ("k=1..5*1", "sweep.bad_range"),
        ("k=0..5*2", "sweep.bad_range"),
        ("k=1..2..3", "sweep.bad_range"),
        ("k=1.5", "sweep.bad_value"),
        ("k=many", "sweep.bad_value"),
        ("k=0", "sweep.bad_value"),
        ("max_num_seqs=-1", "sweep.bad_value"),
        ("k=1e999", "sweep.bad_value"),
        ("temperature=3", "sweep.bad_value"),
        ("acceptance=1.5", "sweep.bad_value"),
        ("requests_per_s=1", "sweep.bad_value"),
        ("nonsense=1", "sweep.unknown_knob"),
        ("nonsense=a=b", "sweep.unknown_knob"),
        ("other.k=1", "sweep.unknown_side"),
        ("off.k=1", "sweep.no_side_has_it"),
        ("draft=m", "sweep.no_side_has_it"),
        ("off.concurrency=1", "sweep.workload_has_no_side"),
    ],
)
def test_what_can_not_be_varied(text: str, message_id: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        points_of(SweepPlan(knobs=(parsed_knob(text),)), CASE)
    assert caught.value.message_id == message_id


@pytest.mark.parametrize(
    ("name", "value", "path"),
    [
        ("max_num_seqs", 16, "knobs.max_num_seqs"),
        ("runtime", "new", "runtime"),
        ("target", "other", "target"),
    ],
)
def test_an_engine_knob_turns_on_every_side(name: str, value: Value, path: str) -> None:
    turned = changed(CASE, name, value, None)
    for index in (0, 1):
        found: Any = engine(turned, index).model_dump()
        for key in path.split("."):
            found = found[key]
        assert found == value


def test_a_knob_of_speculation_turns_where_there_is_speculation() -> None:
    turned = changed(CASE, "k", 2, None)
    assert turned.sides[0] == OFF
    assert engine(turned, 1).speculation == Ngram(num_speculative_tokens=2)


def test_a_knob_turns_on_the_named_side_only() -> None:
    turned = changed(CASE, "max_num_seqs", 4, "ngram")
    assert turned.sides[0] == OFF
    assert engine(turned, 1).knobs == Knobs(max_num_seqs=4)


def test_a_side_by_its_letter() -> None:
    assert changed(CASE, "max_num_seqs", 4, "B") == changed(CASE, "max_num_seqs", 4, "ngram")
    named = CASE.model_copy(update={"sides": (OFF.model_copy(update={"label": "B"}), NGRAM)})
    assert engine(changed(named, "max_num_seqs", 4, "B"), 0).knobs == Knobs(max_num_seqs=4)


def test_a_shorter_longest_match_takes_the_shortest_along() -> None:
    turned = engine(changed(CASE, "prompt_lookup_max", 1, None), 1).speculation
    assert isinstance(turned, Ngram)
    assert (turned.prompt_lookup_min, turned.prompt_lookup_max) == (1, 1)


def test_another_draft() -> None:
    side = Side(label="draft", engine=EngineSettings(target="m", speculation=DraftModel(model="a")))
    turned = changed(CASE.model_copy(update={"sides": (OFF, side)}), "draft", "b", None)
    assert engine(turned, 1).draft == "b"


def test_acceptance_is_prescribed_to_the_engine() -> None:
    turned = changed(CASE, "acceptance", 0.5, None)
    speculation = engine(turned, 1).speculation.model_dump()
    assert speculation["rejection_sample_method"] == "synthetic"
    assert speculation["synthetic_acceptance_rates"] == (0.5, 0.25, 0.125, 0.0625, 0.03125)
    # As long as k says, whichever of the two is turned first.
    longer = engine(changed(turned, "k", 2, None), 1).speculation.model_dump()
    assert longer["synthetic_acceptance_rates"] == (0.5, 0.25)
    other = engine(changed(changed(CASE, "k", 2, None), "acceptance", 0.5, None), 1).speculation.model_dump()
    assert other["synthetic_acceptance_rates"] == (0.5, 0.25)
    # Refused before a list of that length is made.
    for k in (0, 10**9):
        with pytest.raises(InvalidInput):
            changed(turned, "k", k, None)


def test_concurrency_brings_the_requests_that_it_needs() -> None:
    assert changed(CASE, "concurrency", 4, None).measurement.profile == ConcurrencyProfile(
        concurrency=4, requests=8
    )
    assert changed(CASE, "concurrency", 64, None).measurement.profile == ConcurrencyProfile(
        concurrency=64, requests=128
    )
    waves = CASE.model_copy(update={"measurement": Measurement(profile=WavesProfile(concurrency=2, requests=4))})
    assert changed(waves, "concurrency", 8, None).measurement.profile == WavesProfile(concurrency=8, requests=16)


def test_lengths() -> None:
    assert changed(CASE, "prompt_tokens", 100, None).measurement.prompts == SyntheticPrompts(input_tokens=100)
    assert changed(CASE, "output_tokens", 9, None).workload.sampling == Sampling(max_tokens=9, ignore_eos=True)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_known(name: str) -> None:
    """Whatever value it takes: what is wrong is the value or the sides, never the name."""
    try:
        changed(CASE, name, "?", None)
    except InvalidInput as error:
        assert error.message_id in ("sweep.bad_value", "sweep.no_side_has_it")  # noqa: PT017


def test_an_attached_side_has_no_engine_knobs() -> None:
    side = Side(label="far", engine=AttachedEndpoint(base_url="http://127.0.0.1:1", model="m"))
    case = CASE.model_copy(update={"sides": (OFF, side)})
    assert changed(case, "max_num_seqs", 4, None).sides[1] == side
    with pytest.raises(InvalidInput):
        changed(case, "max_num_seqs", 4, "far")


def test_of_many_ranges_only_the_first_are_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A megabyte of them would make ten million values."""
    written_out: list[str] = []
    values = knob_text._values

    def counted(name: str, item: str) -> list[Value]:
        written_out.append(item)
        return values(name, item)

    monkeypatch.setattr(knob_text, "_values", counted)
    with pytest.raises(InvalidInput, match="bad_values"):
        parsed_knob("concurrency=" + "1..64," * 1000)
    assert len(written_out) == 2


def test_two_knobs_make_every_pair() -> None:
    plan = SweepPlan(knobs=(Knob(name="k", values=(1, 2)), Knob(name="concurrency", values=(1, 4, 8))))
    points = points_of(plan, CASE)
    assert [point.number for point in points] == list(range(6))
    assert [point.values for point in points] == [(1, 1), (1, 4), (1, 8), (2, 1), (2, 4), (2, 8)]


def test_too_many_points() -> None:
    many = tuple(range(1, MOST_VALUES + 1))
    plan = SweepPlan(knobs=(Knob(name="k", values=many), Knob(name="max_num_seqs", values=many)))
    with pytest.raises(InvalidInput) as caught:
        points_of(plan, CASE)
    assert caught.value.message_id == "sweep.too_many_points"


@pytest.mark.parametrize("slow_first", [True, False])
def test_an_engine_restarts_as_seldom_as_possible(slow_first: bool) -> None:
    """Whichever knob was named first, k changes once only."""
    knobs = (Knob(name="k", values=(1, 2)), Knob(name="concurrency", values=(1, 4, 8)))
    path = ordered(points_of(SweepPlan(knobs=knobs if slow_first else knobs[::-1]), CASE))
    ks = [engine(point.case, 1).speculation.model_dump()["num_speculative_tokens"] for point in path]
    assert ks == [1, 1, 1, 2, 2, 2]
    # The side without speculation starts once, the other one once a k.
    assert engine_starts(path) == 3
    assert engine_starts(path, engines_of(path[0].case)) == 1


def test_two_knobs_of_two_sides_change_one_engine_at_a_time() -> None:
    plan = SweepPlan(
        knobs=(
            Knob(name="max_num_seqs", values=(1, 2, 3), side="off"),
            Knob(name="k", values=(1, 2, 3), side="ngram"),
        )
    )
    assert engine_starts(ordered(points_of(plan, CASE))) == 2 + 8


def test_equal_sides_are_two_engines() -> None:
    case = CASE.model_copy(update={"sides": (OFF, OFF.model_copy(update={"label": "again"}))})
    assert engines_of(case) == Counter({OFF.engine: 2})


@pytest.mark.parametrize(
    "texts",
    [
        ("k=1,2", "num_speculative_tokens=3"),
        ("k=1", "B.k=5"),
        ("requests=8", "concurrency=16"),
        ("prompt_tokens=100,200", "prompts=chat"),
    ],
)
def test_knobs_that_undo_each_other(texts: tuple[str, str]) -> None:
    with pytest.raises(InvalidInput) as caught:
        points_of(SweepPlan(knobs=tuple(parsed_knob(text) for text in texts)), CASE)
    assert caught.value.message_id == "sweep.knobs_clash"


def test_a_load_profile_of_a_sides_own_is_left_alone() -> None:
    waves = OFF.model_copy(update={"profile": WavesProfile(concurrency=2, requests=4)})
    with pytest.raises(InvalidInput) as caught:
        changed(CASE.model_copy(update={"sides": (waves, NGRAM)}), "concurrency", 4, None)
    assert caught.value.message_id == "sweep.own_profile"


def test_the_two_knobs_differ() -> None:
    knob = Knob(name="k", values=(1,))
    with pytest.raises(ValueError, match="knobs_differ"):
        SweepPlan(knobs=(knob, knob))

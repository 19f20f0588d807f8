"""What sides differ in, and the labels that follow the settings."""

from __future__ import annotations

from typing import Any

import pytest

from playground.domain.spec.case import Side
from playground.domain.spec.difference import cleared, differences, labelled, without
from playground.domain.spec.settings import AttachedEndpoint, EngineSettings

NGRAM = {"method": "ngram", "num_speculative_tokens": 5}


def side(label: str = "s", speculation: Any = None, target: str = "m", **knobs: Any) -> Side:
    engine = {"target": target, "knobs": knobs, "speculation": speculation or {"method": "off"}}
    return Side(label=label, engine=EngineSettings.model_validate(engine))


def other(runtime: str, **knobs: Any) -> Side:
    settings = {"target": "m", "runtime": runtime, "knobs": knobs}
    return Side(label="s", engine=EngineSettings.model_validate(settings))


BASE = (side("Plain"), side("Looks up", NGRAM))


@pytest.mark.parametrize(
    ("sides", "expected"),
    [
        (BASE, {"speculation.method": ("off", "ngram"), "speculation.num_speculative_tokens": (None, 5)}),
        ((side(), side()), {}),
        ((side(dtype="float32"), side()), {"knobs.dtype": ("float32", None)}),
        (
            (side(speculation=NGRAM), side(speculation={**NGRAM, "prompt_lookup_max": 7})),
            {"speculation.prompt_lookup_max": (5, 7)},
        ),
    ],
)
def test_what_differs(sides: tuple[Side, ...], expected: object) -> None:
    assert differences(sides) == expected


def test_every_other_field_counts() -> None:
    plain = side().engine
    more = plain.model_copy(update={"extra_flags": ("--a", "b c"), "runtime": "old", "trust_remote_code": True})
    table = differences((side(), Side(label="t", engine=more)))
    assert {key: row[1] for key, row in table.items()} == {
        "extra_flags": "--a 'b c'",
        "runtime": "old",
        "trust_remote_code": True,
    }


def test_a_difference_that_came_by_itself() -> None:
    """A pasted command does not say what both sides had."""
    before = (side(dtype="float32", max_model_len=512), side("b", NGRAM, dtype="float32", max_model_len=512))
    after = (before[0], side("b", NGRAM, max_num_seqs=4))
    assert cleared(after, before) == {
        "knobs.dtype": ("float32", None),
        "knobs.max_model_len": (512, None),
        "knobs.max_num_seqs": (None, 4),
    }
    assert cleared(before, before) == {}


@pytest.mark.parametrize(
    ("sides", "typed", "labels"),
    [
        (BASE, ("", ""), ["Plain", "Looks up"]),
        (
            (BASE[0], side(speculation={**NGRAM, "num_speculative_tokens": 3})),
            ("", ""),
            ["Plain", "n-gram, k = 3"],
        ),
        ((BASE[0], side(speculation={**NGRAM, "num_speculative_tokens": 3})), ("", "mine"), ["Plain", "mine"]),
        (
            (side(max_num_seqs=16), side(max_num_seqs=64)),
            ("", ""),
            ["Speculation off, max_num_seqs = 16", "Speculation off, max_num_seqs = 64"],
        ),
        ((side(dtype="auto"), side(dtype="auto")), ("", ""), ["Speculation off", "Speculation off (2)"]),
        (
            (side(dtype="auto"), BASE[1]),
            ("", "Speculation off, dtype = auto"),
            ["Speculation off, dtype = auto (2)", "Speculation off, dtype = auto"],
        ),
        (
            (
                BASE[0],
                side(speculation={"method": "draft_model", "model": "org/Tiny", "num_speculative_tokens": 4}),
            ),
            ("", ""),
            ["Plain", "Tiny draft, k = 4"],
        ),
        (
            (BASE[0], Side(label="e", engine=AttachedEndpoint(base_url="http://h:1", model="served"))),
            ("", ""),
            ["Plain", "served"],
        ),
        # Names that would be the same are told apart by their folder or owner.
        (
            (side(target="/a/model"), side(target="/b/model/")),
            ("", ""),
            ["Speculation off, a/model", "Speculation off, b/model"],
        ),
        (
            (side(target="one/Model-7B"), side(target="two/Model-8B")),
            ("", ""),
            ["Speculation off, Model-7B", "Speculation off, Model-8B"],
        ),
        # An engine that is not vLLM is called by its name.
        (
            (other("llama-cpp"), other("transformers", max_num_seqs=4)),
            ("", ""),
            ["llama.cpp", "Transformers, max_num_seqs = 4"],
        ),
    ],
)
def test_a_label_that_nobody_typed_follows_the_settings(
    sides: tuple[Side, ...], typed: tuple[str, ...], labels: list[str]
) -> None:
    assert [named.label for named in labelled(sides, typed, BASE)] == labels


@pytest.mark.parametrize(
    ("label", "swept", "left"),
    [
        ("n-gram, k = 5", ["k"], "n-gram"),
        ("n-gram, k = 5", ["num_speculative_tokens"], "n-gram"),
        ("n-gram, k = 5, dtype = float32", ["dtype"], "n-gram, k = 5"),
        ("n-gram, k = 5", ["max_num_seqs"], "n-gram, k = 5"),
        ("k = 5", ["k"], "k = 5"),
        ("n-gram, k = 7", ["k"], "n-gram, k = 7"),
    ],
)
def test_a_sweep_s_label_leaves_out_what_is_swept(label: str, swept: list[str], left: str) -> None:
    assert without(side(label, NGRAM, dtype="float32"), swept) == left

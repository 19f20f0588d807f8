"""What is read of a model's config.json: real models' values, bytes a token by their papers and vLLM's source."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shapes import sliding_layers

from playground.domain.fit.kv_cache import kv_bytes
from playground.domain.fit.shape import ModelShape

CASES = Path(__file__).parents[2] / "cases" / "shapes" / "models.jsonl"
MODELS = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("case", MODELS, ids=lambda case: case["name"])
def test_a_real_model(case: dict[str, Any]) -> None:
    """`kv`: bytes a token in 16 bits, a sum of products; `window`: layers with one; `unclear`: fields that must be
    among those that are not understood."""
    shape = ModelShape.of(case["config"])
    assert shape is not None
    assert shape.context == case["context"]
    assert set(case.get("unclear", ())) <= set(shape.unclear)
    assert shape.understood == ("unclear" not in case), shape.unclear
    assert sliding_layers(shape) == case.get("window", 0)
    if case["kv"] is not None:
        products = [math.prod(int(factor) for factor in part.split("*")) for part in case["kv"].split("+")]
        assert kv_bytes(shape, 1, 2, batched=1) == sum(products)


def test_the_context_that_is_usual_may_be_shorter() -> None:
    case = next(case for case in MODELS if "LongRoPE" in case["name"])
    shape = ModelShape.of(case["config"])
    assert shape is not None
    assert (shape.context, shape.usual_context) == (131_072, 4096)


def test_more_layers_than_any_model_has_are_not_looked_at() -> None:
    case = next(case for case in MODELS if case["name"] == "Mistral Nemo")
    assert ModelShape.of({**case["config"], "num_hidden_layers": 2**31}) is None


FIELDS = sorted({key for case in MODELS for key in {**case["config"], **case["config"].get("text_config", {})}})
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(MODELS), st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=4))
def test_any_config_has_a_shape_or_none(case: dict[str, Any], changed: dict[str, Any]) -> None:
    shape = ModelShape.of({**case["config"], **changed})
    assert shape is None or kv_bytes(shape, 1000, 2, batched=100) >= 0

"""Settings are checked when they are made, then never change."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import DraftModel, Ngram, SpeculationOff
from playground.domain.spec.workload import ChatMessage, Sampling, Workload


def test_equal_settings_are_equal_keys() -> None:
    """The pool reuses an engine whose settings are unchanged."""
    made = [EngineSettings(target="t", speculation=Ngram(), knobs=Knobs(seed=1)) for _ in range(2)]
    assert made[0] is not made[1]
    assert len(set(made)) == 1
    assert made[0] != EngineSettings(target="t", speculation=Ngram(), knobs=Knobs(seed=2))


@pytest.mark.parametrize("value", [EngineSettings(target="t"), Knobs(), Sampling(), Workload(prompt="x")])
def test_frozen(value: Any) -> None:
    field = next(iter(type(value).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(value, field, getattr(value, field))


@pytest.mark.parametrize(
    ("speculation", "draft", "speculates"),
    [
        ({"method": "off"}, None, False),
        ({"method": "draft_model", "model": "d"}, "d", True),
        ({"method": "ngram"}, None, True),
        ({"method": "ngram_gpu"}, None, True),
        ({"method": "suffix"}, None, True),
        ({"method": "eagle", "model": "e"}, "e", True),
        ({"method": "eagle3", "model": "e"}, "e", True),
        ({"method": "mtp"}, None, True),
    ],
)
def test_each_method(speculation: dict[str, Any], draft: str | None, speculates: bool) -> None:
    made = EngineSettings.model_validate({"target": "t", "speculation": speculation})
    assert (made.draft, made.speculates, made.speculation.method) == (draft, speculates, speculation["method"])
    # What the history keeps gives the same settings back.
    assert EngineSettings.model_validate_json(made.model_dump_json(exclude_none=True)) == made


@pytest.mark.parametrize(
    ("model", "values"),
    [
        (EngineSettings, {}),
        (EngineSettings, {"target": ""}),
        (EngineSettings, {"target": "t", "taget": "t"}),
        (EngineSettings, {"target": "t", "speculation": {"method": "medusa"}}),
        (EngineSettings, {"target": "t", "speculation": {"method": "off", "model": "d"}}),
        (EngineSettings, {"target": "t", "speculation": {"method": "ngram", "model": "d"}}),
        (DraftModel, {}),
        (DraftModel, {"model": "d", "num_speculative_tokens": 0}),
        (DraftModel, {"model": "d", "num_speculative_tokens": 129}),
        (Ngram, {"prompt_lookup_min": 6}),
        (Knobs, {"max_num_seqs": 0}),
        (Knobs, {"gpu_memory_utilization": 1.1}),
        (Knobs, {"dtype": "float64"}),
        (Knobs, {"swap_space": 4}),
        (Sampling, {"temperature": 2.5}),
        (Sampling, {"top_p": 0}),
        (Sampling, {"max_tokens": 0}),
        (Workload, {"prompt": ""}),
        (Workload, {"prompt": " \n"}),
        (Workload, {"prompt": "x", "turns": [{"role": "tool", "content": "x"}]}),
    ],
)
def test_refused(model: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        model.model_validate(values)


@pytest.mark.parametrize(
    ("values", "good"),
    [
        ({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 3.0}, True),
        ({"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": (0.8, 0.5)}, True),
        ({"rejection_sample_method": "standard"}, True),
        ({"rejection_sample_method": "synthetic"}, False),
        ({"synthetic_acceptance_length": 3.0}, False),
        ({"rejection_sample_method": "block", "synthetic_acceptance_rates": (0.8,)}, False),
        ({"rejection_sample_method": "synthetic", "synthetic_acceptance_rates": (1.2,)}, False),
        ({"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 0.5}, False),
    ],
)
def test_synthetic_acceptance_goes_with_its_method(values: dict[str, Any], good: bool) -> None:
    if good:
        assert Ngram.model_validate(values).rejection_sample_method == values["rejection_sample_method"]
    else:
        with pytest.raises(ValidationError):
            Ngram.model_validate(values)


def test_knobs_name_only_what_was_set() -> None:
    assert Knobs().overrides() == {}
    # False is a setting of its own, not an absence.
    assert Knobs(enable_prefix_caching=False, seed=0).overrides() == {"enable_prefix_caching": False, "seed": 0}


@pytest.mark.parametrize(
    ("knobs", "gpus"),
    [({}, 1), ({"tensor_parallel_size": 2}, 2), ({"tensor_parallel_size": 2, "pipeline_parallel_size": 3}, 6)],
)
def test_gpus(knobs: dict[str, int], gpus: int) -> None:
    assert EngineSettings(target="t", knobs=Knobs(**knobs)).gpus == gpus


def test_default_speculation_is_off() -> None:
    assert EngineSettings(target="t").speculation == SpeculationOff()


def test_conversation_order() -> None:
    turns = (ChatMessage(role="user", content="1"), ChatMessage(role="assistant", content="2"))
    made = Workload(prompt="3", system="0", turns=turns).conversation
    assert [message.content for message in made] == ["0", "1", "2", "3"]
    assert [message.role for message in made] == ["system", "user", "assistant", "user"]
    assert [message.role for message in Workload(prompt="3").conversation] == ["user"]

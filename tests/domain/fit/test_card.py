"""What a card's compute capability rules out, and that no remedy asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from support.shapes import CONFIGS

from playground.domain.fit.card import abilities, allows, issues, weakest
from playground.domain.fit.engine_fit import DeviceRoom, remedies
from playground.domain.fit.memory import GIB, Device, Model, need
from playground.domain.fit.shape import ModelShape
from playground.domain.message import Message
from playground.domain.record.run import SideRecord
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.engine.failures.remedies import remedy_of

T4, A100, L4, H100, B200 = (7, 5), (8, 0), (8, 9), (9, 0), (10, 0)


def settings(**knobs: Any) -> EngineSettings:
    return EngineSettings.model_validate({"target": "t", "knobs": knobs})


@pytest.mark.parametrize(
    ("knobs", "capability", "problem", "certain"),
    [
        ({"dtype": "bfloat16"}, T4, "card_bf16", True),
        ({"dtype": "bfloat16"}, A100, None, False),
        ({"dtype": "auto"}, T4, None, False),
        ({"kv_cache_dtype": "fp8"}, A100, "card_fp8_cache", False),
        ({"kv_cache_dtype": "fp8_e5m2"}, T4, "card_fp8_cache", False),
        ({"kv_cache_dtype": "fp8"}, L4, None, False),
        ({"attention_backend": "FLASH_ATTN"}, T4, "card_backend", True),
        ({"attention_backend": "FLASH_ATTN"}, A100, None, False),
        ({"attention_backend": "FLASHMLA"}, A100, "card_backend", True),
        ({"attention_backend": "CUTLASS_MLA"}, H100, "card_backend", True),
        ({"attention_backend": "CUTLASS_MLA"}, B200, None, False),
        ({"quantization": "fp8"}, (7, 0), "card_quantization", True),
        ({"quantization": "awq"}, (7, 0), "card_quantization", True),
        ({"quantization": "fp8"}, A100, None, False),
        ({"quantization": "of_a_plugin"}, T4, None, False),
    ],
)
def test_what_a_card_can_not_do(
    knobs: dict[str, Any], capability: tuple[int, int], problem: str | None, certain: bool
) -> None:
    listed = issues(settings(**knobs), capability, "a card")
    assert [issue.problem.message_id for issue in listed] == ([f"preflight.{problem}"] if problem else [])
    assert all(issue.certain == certain for issue in listed)
    assert issues(settings(**knobs), None, "a card") == []
    for issue in listed:
        # What is proposed resolves it.
        ((change,),) = issue.remedies
        assert issues(change.apply(settings(**knobs)), capability, "a card") == []


def test_flags_that_are_not_read_make_it_uncertain() -> None:
    flagged = settings(dtype="bfloat16").model_copy(update={"extra_flags": ("--dtype", "half")})
    assert [issue.certain for issue in issues(flagged, T4, "a card")] == [False]


def test_a_model_that_is_stored_quantized() -> None:
    (issue,) = issues(settings(), T4, "a card", ["mxfp4", None])
    assert (issue.problem.params["what"], issue.remedies) == ("mxfp4", ())


@pytest.mark.parametrize(("capability", "offered"), [(None, True), (A100, False), (H100, True)])
def test_no_remedy_that_the_card_can_not_do(capability: tuple[int, int] | None, offered: bool) -> None:
    card = Device("cuda", "a card", 24 * GIB, 24 * GIB, capability=capability)
    shape = ModelShape.of(CONFIGS["7b"])
    assert shape is not None
    small = settings(gpu_memory_utilization=0.68, max_model_len=32_768)
    changes = remedies(small, DeviceRoom(card), lambda changed: need(changed, Model(shape), None, card))
    assert ((Change("knobs.kv_cache_dtype", "fp8"),) in changes) == offered
    assert allows(small, Change("knobs.kv_cache_dtype", "fp8"), capability) == offered


def test_after_a_failure_neither() -> None:
    problem = Message("failure.quantization_dtype", {"supported": "torch.bfloat16, torch.float16"})
    side = SideRecord("A", settings(dtype="float32", quantization="awq"), problem=problem)
    for machine, dtypes in (({}, {"bfloat16", "float16"}), ({"gpus": [{"capability": "7.5"}]}, {"float16"})):
        remedy = remedy_of(side, machine)
        assert remedy is not None
        assert {change.value for change in remedy.changes if change.key == "knobs.dtype"} == dtypes


def test_a_recorded_machine() -> None:
    """Older runs have no capability."""
    assert weakest({"gpus": [{"capability": "9.0"}, {"capability": "7.5"}]}) == T4
    assert weakest({"gpus": [{"name": "a card"}]}) is None
    assert weakest({}) is None


def test_abilities_in_words() -> None:
    assert abilities(T4) == "64 KiB"
    assert abilities(H100) == "bfloat16, FP8, FlashAttention 2, 3, 227 KiB"

"""Speculation off on the path of a side that speculates, by vLLM's own rules."""

from __future__ import annotations

from typing import Any

import pytest

from playground.domain.spec.case import Side
from playground.domain.spec.same_path import same_path
from playground.domain.spec.settings import EngineSettings

NO_ASYNC = {"async_scheduling": False}
V1 = {"use_v2_model_runner": False}
DRAFT = {"method": "draft_model", "model": "d"}
RULES: list[tuple[dict[str, Any], str, str, dict[str, bool] | None]] = [
    # vLLM 0.26 on an H200: off ran V2 with asynchronous scheduling, these neither.
    (DRAFT, "0.26.0", "cuda", NO_ASYNC | V1),
    ({"method": "ngram"}, "0.26.0", "cuda", NO_ASYNC | V1),
    ({"method": "eagle3", "model": "h"}, "0.26.0", "cuda", None),
    ({"method": "mtp"}, "0.26.0", "cuda", None),
    ({"method": "ngram_gpu"}, "0.26.0", "cuda", V1),
    # vLLM 0.32 has all but these.
    (DRAFT, "0.32.0", "cuda", None),
    (DRAFT | {"use_heterogeneous_vocab": True}, "0.32.0", "cuda", V1),
    ({"method": "ngram"}, "0.32.0", "cuda", NO_ASYNC),
    ({"method": "suffix"}, "0.33.1rc2", "cuda", NO_ASYNC | V1),
    # Between them nothing is certain but what both have in common.
    (DRAFT, "0.29.0", "cuda", None),
    ({"method": "ngram"}, "0.29.0", "cuda", NO_ASYNC),
    # A CPU's engines have neither.
    ({"method": "ngram"}, "0.32.0", "cpu", None),
    ({"method": "off"}, "0.26.0", "cuda", None),
]


@pytest.mark.parametrize(("speculation", "version", "device", "knobs"), RULES)
def test_what_is_withheld(
    speculation: dict[str, Any], version: str, device: str, knobs: dict[str, bool] | None
) -> None:
    settings = {"target": "m", "speculation": speculation, "knobs": {"max_num_seqs": 4}}
    plain = same_path(Side(label="x", engine=EngineSettings.model_validate(settings)), version, device)
    if knobs is None:
        assert plain is None
        return
    assert plain is not None
    assert isinstance(plain.engine, EngineSettings)
    assert plain.engine.speculates is False
    assert plain.engine.knobs.overrides() == {"max_num_seqs": 4, **knobs}


def test_what_a_knob_decides_is_left_to_it() -> None:
    settings = {"target": "m", "speculation": {"method": "ngram"}, "knobs": NO_ASYNC}
    assert same_path(Side(label="x", engine=EngineSettings.model_validate(settings)), "0.32.0", "cuda") is None

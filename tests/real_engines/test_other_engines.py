"""Transformers and llama.cpp, started for real as the two sides of a race."""

from __future__ import annotations

import pytest
from support.races import raced
from support.real import real_host

from playground.domain.record.metrics import side_figures
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.models import folders

pytestmark = pytest.mark.foreign


async def test_a_race_of_two_that_are_no_vllm() -> None:
    sides = tuple(
        Side(label=name, engine=EngineSettings(runtime=name, target=folders.EMBEDDED))
        for name in ("transformers", "llama-cpp")
    )
    async with real_host() as host:
        run = (await raced(host, 12, sides)).run
        assert (run.status, run.problem) == ("done", None)
        for side in run.sides:
            [trace] = side.requests
            assert trace.problem is None
            assert trace.counted_tokens == 12
            assert "token_ids" in side.missing
            assert side.engine is not None
            assert not side.engine.startswith("vLLM")
            assert side_figures(side).tpot_ms is not None
        counters = run.sides[1].trials[0].after
        assert counters is not None
        assert counters.generation_tokens
        assert run.sides[0].trials[0].after is None
        assert host.history.get(run.id) == run

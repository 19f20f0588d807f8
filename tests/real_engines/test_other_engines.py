"""Transformers and llama.cpp, started for real as the two sides of a race."""

from __future__ import annotations

import pytest
from support.races import raced
from support.real import real_host

from playground.domain.record.metrics import side_figures
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import DraftModel
from playground.models import folders

pytestmark = pytest.mark.foreign


async def test_a_race_of_two_that_are_no_vllm() -> None:
    draft = DraftModel(model=folders.EMBEDDED, num_speculative_tokens=3)
    sides = (
        Side(label="Transformers", engine=EngineSettings(runtime="transformers", target=folders.EMBEDDED)),
        Side(
            label="llama.cpp",
            engine=EngineSettings(runtime="llama-cpp", target=folders.EMBEDDED, speculation=draft),
        ),
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
        assert side_figures(run.sides[1]).acceptance_rate is not None
        assert run.sides[0].trials[0].after is None
        assert host.history.get(run.id) == run

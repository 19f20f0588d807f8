"""What happens to engines when settings change, when a race is stopped, and when one can't start."""

from __future__ import annotations

import psutil
import pytest
from support.real import DRAFT_K, raced, shortened, survivors, until, with_speculation

from playground import presets
from playground.domain.record.metrics import request_figures, side_figures
from playground.domain.record.token_sources import token_origins
from playground.domain.spec.case import Side
from playground.domain.spec.settings import Knobs
from playground.i18n import say_message
from playground.presets import Preset
from playground.runs.host import Host

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="package")]


async def test_changing_side_b_leaves_side_a_running(host: Host, preset: Preset) -> None:
    """And a draft that is its own target is accepted almost always."""
    before = host.pool.engines[0]
    comparison = await raced(
        host, with_speculation(preset, presets.load("smollm2-draft").sides[1].engine.target), shortened(preset)
    )
    assert comparison.run.status == "done", comparison.run.problem
    assert before in host.pool.engines
    assert len(host.pool.engines) == 2
    off, draft = comparison.run.sides
    assert off.requests[0].token_ids == draft.requests[0].token_ids
    figures = side_figures(draft)
    assert figures.acceptance_rate is not None
    assert figures.acceptance_rate > 0.9
    assert figures.tokens_per_step is not None
    assert figures.tokens_per_step > DRAFT_K
    origins, settled = token_origins(draft.requests[0], speculates=True)
    assert settled
    assert origins is not None
    assert len(origins) == draft.requests[0].output_tokens


async def test_stop_in_the_middle(host: Host, preset: Preset) -> None:
    """Both streams end, what arrived is kept, the engines drop the requests and live on."""
    sides = with_speculation(preset, presets.load("smollm2-draft").sides[1].engine.target)
    sampling = preset.workload.sampling.model_copy(update={"max_tokens": 1500, "ignore_eos": True})
    comparison = host.comparison(sides, preset.workload.model_copy(update={"sampling": sampling}))
    await host.start(comparison, "test")

    def streaming() -> bool:
        return all(side.requests and len(side.requests[0].chunks) > 5 for side in comparison.run.sides)

    await until(streaming, within_s=300)
    comparison.stop()
    await until(lambda: comparison.finished, within_s=30)
    assert comparison.run.status == "stopped"
    for side in comparison.run.sides:
        trace = side.requests[0]
        assert trace.problem is not None
        assert trace.problem.message_id == "stream.stopped"
        assert 5 < len(trace.chunks) < 1500
        assert request_figures(trace).tpot_ms is not None
        assert side.trials[0].after is not None, "the engine did not come to rest"
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.status == "stopped"
    assert [s.requests for s in stored.sides] == [s.requests for s in comparison.run.sides]
    assert all(engine.alive for engine in host.pool.engines)


async def test_an_engine_that_cannot_start_says_why(host: Host, preset: Preset) -> None:
    off = preset.sides[0]
    knobs = Knobs.model_validate({**off.engine.knobs.overrides(), "max_model_len": 1_000_000})
    wrong = Side(label="too long", engine=off.engine.model_copy(update={"knobs": knobs}))
    comparison = await raced(host, (off, wrong), preset.workload)
    assert comparison.run.status == "failed"
    problem = comparison.run.sides[1].problem
    assert problem is not None
    assert problem.message_id == "failure.context_too_long"
    assert "max_model_len" in say_message(problem)
    assert comparison.run.sides[1].log_tail
    assert comparison.run.problem is not None
    assert "too long" in say_message(comparison.run.problem)
    # The other side is not to blame: it lives on and will be reused.
    assert [engine.alive for engine in host.pool.engines] == [True]


async def test_a_killed_guard_takes_its_engine_along(host: Host, preset: Preset) -> None:
    """vLLM's server, its core and its workers: the kernel tells them, or the playground ends them."""
    [engine] = host.pool.engines
    commands = {process: process.cmdline() for process in psutil.Process().children()}
    [guard] = [process for process, words in commands.items() if str(engine.uds) in " ".join(words)]
    family = guard.children(recursive=True)
    assert len(family) >= 2
    guard.kill()
    assert not survivors(family, within_s=30)

"""Speculation off against n-gram, on engines that have just started."""

from __future__ import annotations

import psutil
import pytest
from support.real import descendants, private_bytes, raced

from playground.domain.fit.memory import CPU_PROCESS_BYTES
from playground.domain.record.metrics import acceptance_of, side_figures
from playground.domain.record.token_sources import token_origins
from playground.engine import devices
from playground.presets import Preset
from playground.runs.host import Host
from playground.runs.sides import preflight

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="package")]


RACES = 5


async def test_race_off_against_ngram(host: Host, preset: Preset) -> None:
    comparison = await raced(host, preset.sides, preset.workload)
    assert comparison.run.status == "done", comparison.run.problem
    off, ngram = comparison.run.sides
    answers = [side.requests[0] for side in (off, ngram)]

    assert answers[0].token_ids == answers[1].token_ids
    assert answers[0].output_tokens == preset.workload.sampling.max_tokens
    assert len(answers[1].chunks) < len(answers[0].chunks)
    assert off.contended
    assert ngram.contended
    # Cores of its own for each, where there are two.
    assert (off.placement != ngram.placement) == (len(devices.machine().cores) > 1)

    # The engine's counters and its per-request record are two accounts of the same steps.
    acceptance = acceptance_of(ngram.trials)
    steps = answers[1].steps
    assert acceptance is not None
    assert steps is not None
    assert acceptance.accepted_tokens == sum(steps.accepted) > 0
    assert acceptance.draft_tokens == sum(steps.drafted)
    assert acceptance.drafts == len(steps.accepted)
    assert acceptance_of(off.trials) is None
    assert side_figures(off).tokens_per_step == 1
    assert token_origins(answers[0], speculates=False) == (None, False)

    # What the history keeps is what happened.
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.status == "done"
    assert [side.requests for side in stored.sides] == [side.requests for side in comparison.run.sides]
    assert stored.sides[1].samples == ngram.samples
    assert [side_figures(side) for side in stored.sides] == [side_figures(side) for side in (off, ngram)]


async def test_the_engines_own_record_settles_which_tokens_were_drafted(host: Host, preset: Preset) -> None:
    """On engines that are warm. A busy machine may read several steps in one chunk, which can leave more than one
    possibility: then the next race tells."""
    for _ in range(RACES):
        comparison = await raced(host, preset.sides, preset.workload)
        [answer] = comparison.run.sides[1].requests
        origins, settled = token_origins(answer, speculates=True)
        if settled:
            break
    assert settled, f"in none of {RACES} races"
    assert origins is not None
    assert answer.steps is not None
    # An answer's very last step may be cut short by the length limit, and no other.
    accepted = answer.steps.accepted
    assert sum(accepted) - accepted[-1] <= sum(origins) <= sum(accepted)
    assert len(origins) == answer.output_tokens


async def test_estimated_memory_against_resident_memory(host: Host, preset: Preset) -> None:
    """What the process with the model holds beyond the one that started it, which has the same libraries and no
    model: weights, activations, the KV cache, which is allocated whole, and what the heap keeps."""
    checks = preflight.examine(host.config, host.comparison(preset.sides, preset.workload).run)
    needs = dict(zip((False, True), (check.need for check in checks), strict=True))
    seen = set()
    for worker in descendants(psutil.Process().pid):
        core = worker.parent()
        if core is None or not worker.name().startswith("VLLM::Worker"):
            continue
        commands = (" ".join(process.cmdline()) for process in core.parents())
        command = next(command for command in commands if "--uds" in command)
        need = needs["ngram" in command]
        assert need is not None
        estimated = need.weights + need.activations + need.other - CPU_PROCESS_BYTES
        held = private_bytes(worker) - private_bytes(core) - need.kv_available
        print(f"{estimated / 1e6:.0f} MB estimated, {held / 1e6:.0f} MB held", "ngram" in command)
        assert estimated == pytest.approx(held, rel=0.15)
        seen.add("ngram" in command)
    assert seen == {False, True}

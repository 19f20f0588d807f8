"""The main job on real vLLM engines with a real small model. Slow: about five minutes on two cores.

One host for all tests, in order: engines that don't change are reused, which is itself under test.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from real import descendants, embedded_model, private_bytes, raced, real_host, shuffled_copy, until

from playground import harness, preflight, presets
from playground.accuracy import FOLDER
from playground.domain.harness import harness_statements
from playground.domain.measurement import Harness
from playground.domain.metrics import acceptance_of, request_figures, side_figures
from playground.domain.origins import token_origins
from playground.domain.settings import DraftModel, EngineSettings, Knobs
from playground.domain.sides import Side
from playground.engine.command import SERVED_NAME
from playground.host import Host
from playground.load.endpoint import Endpoint
from playground.presets import Preset
from playground.text import say_problem

pytestmark = pytest.mark.asyncio(loop_scope="module")

SELF_DRAFT_K = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host() -> AsyncIterator[Host]:
    async with real_host() as made:
        yield made


@pytest.fixture(scope="module")
def preset() -> Preset:
    return presets.load("smollm2-ngram")


def with_speculation(preset: Preset, model: str | Path) -> tuple[Side, ...]:
    """The preset's first side, and beside it the same with a draft model."""
    off = preset.sides[0]
    speculation = DraftModel(model=str(model), num_speculative_tokens=SELF_DRAFT_K)
    drafted = off.engine.model_copy(update={"speculation": speculation})
    return off, Side(label="draft", engine=EngineSettings.model_validate(drafted.model_dump()))


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
    assert off.placement != ngram.placement or len(comparison.run.machine) < 2

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
    origins, settled = token_origins(answers[1], speculates=True)
    assert origins is not None
    # An estimate counts too many where the engine merged steps into one chunk.
    assert not settled or sum(origins) <= acceptance.accepted_tokens

    # What the history keeps is what happened.
    stored = host.history.get(comparison.run.id)
    assert stored is not None
    assert stored.status == "done"
    assert [side.requests for side in stored.sides] == [side.requests for side in comparison.run.sides]
    assert stored.sides[1].samples == ngram.samples
    assert [side_figures(side) for side in stored.sides] == [side_figures(side) for side in (off, ngram)]


async def test_the_harness_asks_both_engines(host: Host, tmp_path: Path, lm_eval: None) -> None:
    """The same questions, answered by the engines that raced: at temperature 0 speculation changes no score."""
    assert host.latest is not None
    run = deepcopy(host.latest.run)
    asked = Harness(tasks=(str(task_file(tmp_path)),), limit=4)
    endpoints = [Endpoint(SERVED_NAME, uds=str(engine.uds)) for engine in host.pool.engines]
    heard: list[tuple[int, int]] = []
    run.harness = await harness.examine(asked, run, endpoints, 120, lambda *so_far: heard.append(so_far))
    assert run.harness.problem is None, say_problem(run.harness.problem)
    [found] = run.harness.scores
    print(say_problem(harness_statements(run)[0]))
    assert (found.task, found.metric, [len(own) for own in found.scores]) == ("facts", "exact_match", [4, 4])
    assert found.scores[0] == found.scores[1]
    assert len(harness_statements(run)) == 3
    assert heard == sorted(heard)


def task_file(folder: Path) -> Path:
    """Built-in questions as a task of lm-evaluation-harness: its own need the internet."""
    path = folder / "facts.yaml"
    path.write_text(
        "task: facts\n"
        "dataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: '{FOLDER / 'facts.jsonl'}'}}}}\n"
        "test_split: test\n"
        "output_type: generate_until\n"
        'doc_to_text: "{{question}}"\n'
        'doc_to_target: "{{answers[0]}}"\n'
        'generation_kwargs: {until: ["\\n"], max_gen_toks: 16, do_sample: false}\n'
        "metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]\n"
    )
    return path


async def test_estimated_memory_against_resident_memory(host: Host, preset: Preset) -> None:
    """What the process with the model holds beyond the one that started it, which has the same libraries and no
    model: weights, activations, and the KV cache, which is allocated whole. Of the side without speculation, for
    n-gram brings a compiler of its own."""
    check = preflight.examine(host.config, host.comparison(preset.sides, preset.workload).run)[0]
    assert check.need is not None
    estimated = check.need.weights + check.need.activations
    for worker in descendants(psutil.Process().pid):
        core = worker.parent()
        if core is None or not worker.name().startswith("VLLM::Worker"):
            continue
        held = private_bytes(worker) - private_bytes(core) - check.need.kv_available
        command = next(" ".join(each.cmdline()) for each in core.parents() if "--uds" in each.cmdline())
        print(f"{estimated / 1e6:.0f} MB estimated, {held / 1e6:.0f} MB held", "ngram" in command)
        if "ngram" not in command:
            assert estimated == pytest.approx(held, rel=0.15)
            return
    pytest.fail("no engine without speculation runs")


async def test_changing_side_b_leaves_side_a_running(host: Host, preset: Preset) -> None:
    """And a draft that is its own target is accepted almost always."""
    before = host.pool.engines[0]
    comparison = await raced(
        host, with_speculation(preset, presets.load("smollm2-draft").sides[1].engine.target), preset.workload
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
    assert figures.tokens_per_step > SELF_DRAFT_K
    origins, settled = token_origins(draft.requests[0], speculates=True)
    assert settled
    assert origins is not None
    assert len(origins) == draft.requests[0].output_tokens


async def test_a_poor_draft_is_accepted_almost_never(host: Host, preset: Preset, tmp_path: Path) -> None:
    poor = shuffled_copy(await embedded_model(), tmp_path / "shuffled")
    comparison = await raced(host, with_speculation(preset, poor), preset.workload)
    assert comparison.run.status == "done", comparison.run.problem
    off, draft = comparison.run.sides
    assert off.requests[0].token_ids == draft.requests[0].token_ids
    figures = side_figures(draft)
    assert figures.acceptance_rate is not None
    assert figures.acceptance_rate < 0.1


async def test_stop_in_the_middle(host: Host, preset: Preset) -> None:
    """Both streams end, what arrived is kept, the engines drop the requests and live on."""
    sides = tuple(Side(label=label, engine=preset.sides[0].engine) for label in ("one", "other"))
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
    assert "max_model_len" in say_problem(problem)
    assert comparison.run.sides[1].log_tail
    assert comparison.run.problem is not None
    assert "too long" in say_problem(comparison.run.problem)
    # The other side is not to blame: it lives on and will be reused.
    assert [engine.alive for engine in host.pool.engines] == [True]

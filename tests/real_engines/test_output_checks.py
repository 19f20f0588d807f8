"""Whether the answers agree, and whether they are right: asked of the engines that raced."""

from __future__ import annotations

import asyncio
from copy import deepcopy
from pathlib import Path

import pytest
import pytest_asyncio
from support.real import raced

from playground import prompts
from playground.domain.answers.agreement import GreedyAgreement, SampledAgreement, agreements, answers_of, dtype_of
from playground.domain.answers.harness import harness_statements
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.spec.load_profile import ConcurrencyProfile
from playground.domain.spec.measurement import Harness
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.workload import Sampling, Workload
from playground.engine.command import SERVED_NAME
from playground.i18n import say_message
from playground.load.driver_client import MeasuredLoad
from playground.load.endpoint import Endpoint
from playground.presets import Preset
from playground.runs.checks import harness
from playground.runs.checks.accuracy import FOLDER
from playground.runs.checks.answers import REPEATS, examine
from playground.runs.checks.client import OnProgress
from playground.runs.host import Host

pytestmark = [pytest.mark.engine, pytest.mark.asyncio(loop_scope="package")]

TIMEOUT_S = 120
GREEDY = Sampling(max_tokens=24, ignore_eos=True)
CHATS = prompts.load("chat")[:4]


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def sides(host: Host, preset: Preset) -> list[Endpoint]:
    comparison = await raced(host, preset.sides, preset.workload)
    assert comparison.run.status == "done", comparison.run.problem
    return [Endpoint(SERVED_NAME, uds=str(engine.uds)) for engine in host.pool.engines]


async def answered(side: Endpoint, sampling: Sampling) -> SideRecord:
    profile = ConcurrencyProfile(requests=len(CHATS))
    load = MeasuredLoad(side, CHATS, sampling, profile, seed=0, idle_timeout_s=TIMEOUT_S)
    async for _ in load.run():
        pass
    settings = EngineSettings(target="SmolLM2", knobs=Knobs(dtype="float32"))
    return SideRecord("a side", settings, trials=[Trial(requests=load.in_order)])


async def examined(
    sides: list[Endpoint], samplings: list[Sampling], on_progress: OnProgress = lambda *_: None
) -> GreedyAgreement:
    """Each side answers with its own sampling; then both are asked as if it had been the first's."""
    records = await asyncio.gather(*map(answered, sides, samplings))
    conversations, answers = answers_of(Run("run", "now", "measured", Workload(prompt="x"), records))
    assert len(conversations) == len(CHATS)
    evidence = await examine(sides, conversations, samplings[0], answers, TIMEOUT_S, on_progress)
    (found,) = agreements(answers, evidence, [dtype_of(record) for record in records], temperature=0)
    assert isinstance(found, GreedyAgreement)
    assert found.compared == len(CHATS)
    return found


async def test_speculation_changes_no_greedy_answer(sides: list[Endpoint]) -> None:
    found = await examined(sides, [GREEDY, GREEDY])
    assert found.identical == len(CHATS)


async def test_logprobs_where_answers_part(sides: list[Endpoint]) -> None:
    """One side answers under a penalty, as another model might: logprobs tell that this is no rounding."""
    penalty = GREEDY.model_copy(update={"repetition_penalty": 1.3})
    heard: list[tuple[int, int]] = []
    found = await examined(sides, [GREEDY, penalty], lambda *so_far: heard.append(so_far))
    assert found.differences
    for difference in found.differences:
        baseline, side = difference.top
        chosen, other = difference.at.tokens
        assert baseline is not None
        assert side is not None
        # The context was right: the next token is the one that the baseline's answer has there.
        assert max(baseline, key=lambda token: baseline[token]) == chosen
        # And the same on both sides, which run one model.
        assert side[chosen] == pytest.approx(baseline[chosen], abs=1e-3)
        assert other is not None
        assert side.get(other, min(side.values())) < side[chosen]
    assert found.count("real difference") > 0
    questions = 2 * len(found.differences)
    assert sorted(heard) == [(done, questions) for done in range(questions + 1)]


async def test_one_prompt_many_times(sides: list[Endpoint]) -> None:
    drawn = Sampling(max_tokens=12, temperature=1)
    conversations = [prompt.conversation for prompt in CHATS]
    evidence = await examine(sides, conversations, drawn, [[None] * len(CHATS)] * 2, TIMEOUT_S)
    assert [own.side for own in evidence.repeats] == [0, 1]
    for own in evidence.repeats:
        assert len(own.answers) == REPEATS
        assert None not in own.answers
        # Each with a seed of its own.
        assert len(set(own.answers)) > REPEATS / 2
    (found,) = agreements([[], []], evidence, [None, None], temperature=1)
    assert isinstance(found, SampledAgreement)
    assert found.check.samples == (REPEATS, REPEATS)
    assert found.check.p_value is not None


@pytest.mark.foreign
async def test_the_harness_asks_both_engines(
    host: Host, sides: list[Endpoint], tmp_path: Path, lm_eval: None
) -> None:
    """The same questions, answered by the engines that raced: at temperature 0 speculation changes no score."""
    assert host.latest is not None
    run = deepcopy(host.latest.run)
    asked = Harness(tasks=(str(task_file(tmp_path)),), limit=4)
    heard: list[tuple[int, int]] = []
    run.harness = await harness.examine(asked, run, sides, TIMEOUT_S, lambda *so_far: heard.append(so_far))
    assert run.harness.problem is None, say_message(run.harness.problem)
    [found] = run.harness.scores
    print(say_message(harness_statements(run)[0]))
    assert (found.task, found.metric, [len(own) for own in found.scores]) == ("facts", "exact_match", [4, 4])
    assert found.scores[0] == found.scores[1]
    assert len(harness_statements(run)) == 3
    assert heard == sorted(heard), "progress goes back"


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

"""Does a speculation work with its target: by content, not by size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.shapes import CONFIGS

from playground.domain.fit.memory import Model
from playground.domain.fit.pair import Abilities, Pair, Partner, Tokens, check
from playground.domain.fit.shape import ModelShape
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.workload import Sampling
from playground.i18n import LOCALES, say_message

WORDS = Tokens(
    vocabulary={f"\u0120w{number}": number for number in range(100)},
    merges=("a b", "b c"),
    added={"<|end|>": (100, True)},
    chat_template="{{ messages }}",
)
OTHER = Tokens(vocabulary={f"\u2581w{number}": 99 - number for number in range(100)}, added=WORDS.added)
GPU = Abilities("0.32.0", "cuda")


def partner(name: str, tokens: Tokens | None = WORDS, **changed: Any) -> Partner:
    shape = ModelShape.of({**CONFIGS[name], **changed})
    assert shape is not None
    return Partner(Model(shape), tokens)


def checked(
    speculation: dict[str, Any],
    draft: Partner | None = None,
    runtime: Abilities = GPU,
    knobs: dict[str, Any] | None = None,
    **sampling: Any,
) -> Pair:
    settings = EngineSettings.model_validate({"target": "t", "speculation": speculation, "knobs": knobs or {}})
    return check(settings, partner("7b"), draft, runtime, Sampling(**sampling))


def drafted(draft: Partner, runtime: Abilities = GPU, **more: Any) -> Pair:
    return checked({"method": "draft_model", "model": "d", **more}, draft, runtime)


def ids(pair: Pair) -> list[str]:
    return [issue.problem.message_id.removeprefix("preflight.") for issue in pair.issues]


def certain(pair: Pair) -> list[str]:
    return [each.problem.message_id.removeprefix("preflight.") for each in pair.issues if each.certain]


def test_a_fitting_pair_works() -> None:
    pair = drafted(partner("1.5b"))
    assert (pair.verdict, pair.equal_ids, ids(pair)) == ("works", 1, [])
    assert pair.size_ratio == pytest.approx(0.203, rel=0.01)


def test_speculation_off_has_no_pair() -> None:
    pair = checked({"method": "off"})
    assert (pair.verdict, pair.issues) == (None, ())


def test_same_tokens_padded_to_other_sizes() -> None:
    """Qwen2.5: 152,064 in the 7B, 151,936 in its smaller ones. vLLM refuses that."""
    pair = drafted(partner("0.5b", vocab_size=151_936))
    assert (pair.verdict, certain(pair)) == ("will not work", ["padding"])
    assert (Change("speculation.use_heterogeneous_vocab", True),) in pair.issues[0].remedies
    mended = drafted(partner("0.5b", vocab_size=151_936), use_heterogeneous_vocab=True)
    assert (mended.verdict, ids(mended)) == ("works", ["heterogeneous_same", "small_draft", "withheld"])


def test_equal_sizes_with_other_tokens() -> None:
    """vLLM compares sizes only: it would start and accept nothing."""
    pair = drafted(partner("0.5b", OTHER))
    assert pair.verdict == "will not work"
    assert certain(pair) == ["other_vocabulary"]
    assert pair.equal_ids == pytest.approx(1 / 101)


def test_equal_sizes_with_other_tokens_under_synthetic_acceptance() -> None:
    """There the draft's words don't matter, so a start is not refused."""
    synthetic = {"rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.0}
    assert certain(drafted(partner("0.5b", OTHER), **synthetic)) == []


def test_other_sizes_and_other_tokens() -> None:
    pair = drafted(partner("0.5b", OTHER, vocab_size=32_000))
    assert certain(pair) == ["vocabulary_size"]
    without = drafted(partner("0.5b", OTHER, vocab_size=32_000), replace(GPU, heterogeneous=False))
    assert without.issues[0].remedies == ((Change("speculation", "off"),),)


def test_a_few_other_tokens() -> None:
    """A finetune with other special tokens: DeepSeek's distilled Qwen beside Qwen."""
    tokens = replace(WORDS, added={"<|stop|>": (100, True)})
    pair = drafted(partner("0.5b", tokens))
    assert pair.verdict == "works, but"
    assert ids(pair) == ["some_tokens", "added_tokens", "small_draft"]
    (count,) = [each.problem.params["count"] for each in pair.issues if "count" in each.problem.params]
    assert count == 2


def test_other_merges() -> None:
    assert "merges" in ids(drafted(partner("0.5b", replace(WORDS, merges=("b c", "a b")))))


def test_another_chat_template_is_only_noted() -> None:
    pair = drafted(partner("0.5b", replace(WORDS, chat_template="{{ other }}")))
    assert (pair.verdict, ids(pair)) == ("works", ["chat_template", "small_draft"])


def test_without_a_tokenizer_it_is_unknown() -> None:
    pair = drafted(partner("0.5b", None))
    assert (pair.verdict, ids(pair)) == (None, ["no_tokenizer", "small_draft"])


def test_heterogeneous_vocabulary_and_its_limits() -> None:
    """Tokens that begin with either mark of a space are the same there, as in vLLM."""
    pair = drafted(partner("0.5b", OTHER, vocab_size=32_000), use_heterogeneous_vocab=True)
    assert "heterogeneous_same" in ids(pair)
    fewer = replace(OTHER, vocabulary=dict(list(OTHER.vocabulary.items())[:50]))
    pair = drafted(partner("0.5b", fewer, vocab_size=32_000), use_heterogeneous_vocab=True)
    assert pair.verdict == "works, but"
    assert pair.issues[0].problem.params["percent"] == pytest.approx(100 * 51 / 101)
    old = drafted(partner("0.5b", OTHER), replace(GPU, heterogeneous=False), use_heterogeneous_vocab=True)
    assert certain(old) == ["no_heterogeneous"]
    random = {"use_heterogeneous_vocab": True, "draft_sample_method": "probabilistic"}
    assert certain(drafted(partner("0.5b", OTHER), **random)) == ["heterogeneous_greedy"]


@pytest.mark.parametrize(("draft", "message_id"), [("0.5b", "small_draft"), ("1.5b", None), ("7b", "large_draft")])
def test_size_ratio(draft: str, message_id: str | None) -> None:
    assert ids(drafted(partner(draft))) == ([message_id] if message_id else [])


def test_a_draft_with_a_shorter_context() -> None:
    pair = checked({"method": "draft_model", "model": "d"}, partner("0.5b", max_position_embeddings=2048))
    (issue,) = [each for each in pair.issues if each.problem.message_id == "preflight.draft_context"]
    assert issue.problem.params == {"draft": 2048, "target": 32_768}
    short = {"max_model_len": 2048}
    pair = checked(
        {"method": "draft_model", "model": "d"}, partner("0.5b", max_position_embeddings=2048), knobs=short
    )
    assert "draft_context" not in ids(pair)


@pytest.mark.parametrize("method", ["suffix", "ngram_gpu"])
def test_methods_that_fail_on_a_cpu(method: str) -> None:
    assert certain(checked({"method": method}, runtime=Abilities("0.32.0", "cpu"))) == ["method_not_on_cpu"]
    assert checked({"method": method}).verdict == "works"


def test_suffix_needs_its_package() -> None:
    assert certain(checked({"method": "suffix"}, runtime=replace(GPU, suffix=False))) == ["no_arctic"]


def test_mtp_needs_layers() -> None:
    pair = checked({"method": "mtp"})
    assert (pair.verdict, certain(pair)) == ("will not work", [])


def test_min_p_is_refused_under_speculation() -> None:
    assert certain(checked({"method": "ngram"}, min_p=0.1)) == ["min_p"]
    assert checked({"method": "ngram"}, min_p=0.0).verdict == "works"
    assert checked({"method": "off"}, min_p=0.1).issues == ()


SCHEDULE = {"method": "ngram", "num_speculative_tokens_per_batch_size": [[9, 64, 0], [1, 8, 5]]}
OLD = Abilities("0.26.0", "cuda")


@pytest.mark.parametrize(
    ("speculation", "runtime", "knobs", "found"),
    [
        ({"method": "ngram"}, GPU, {"async_scheduling": True}, ["no_async"]),
        ({"method": "ngram"}, GPU, {"async_scheduling": False}, []),
        ({"method": "ngram"}, OLD, {"use_v2_model_runner": True, "async_scheduling": False}, ["v1_only"]),
        ({"method": "ngram"}, GPU, {"use_v2_model_runner": True, "async_scheduling": False}, []),
        ({"method": "dspark", "model": "d"}, GPU, {"use_v2_model_runner": False}, ["v2_only"]),
        ({"method": "dspark", "model": "d"}, Abilities("0.32.0", "cpu"), {}, ["method_not_on_cpu"]),
        ({"method": "ngram"}, Abilities("0.32.0", "cpu"), {"async_scheduling": True}, []),
        (SCHEDULE, GPU, {"async_scheduling": False}, []),
        (SCHEDULE, replace(GPU, schedules=False), {"async_scheduling": False}, ["no_schedule"]),
        ({**SCHEDULE, "num_speculative_tokens_per_batch_size": [[2, 8, 5]]}, GPU, {}, ["schedule_ranges"]),
        (
            {**SCHEDULE, "num_speculative_tokens_per_batch_size": [[1, 8, 5], [8, 9, 0]]},
            GPU,
            {},
            ["schedule_ranges"],
        ),
    ],
)
def test_what_vllm_refuses_of_a_path(
    speculation: dict[str, Any], runtime: Abilities, knobs: dict[str, Any], found: list[str]
) -> None:
    pair = checked(speculation, runtime=runtime, knobs=knobs)
    assert certain(pair) == found
    for issue in pair.issues:
        assert all(say_message(issue.problem, locale) for locale in LOCALES)


def test_what_vllm_withholds_is_said_before_the_start() -> None:
    assert ids(checked({"method": "ngram"}, runtime=OLD)) == ["withheld"]
    assert ids(checked({"method": "eagle3", "model": "h"}, runtime=OLD)) == []
    assert ids(checked(SCHEDULE, knobs={"data_parallel_size": 2, "async_scheduling": False})) == [
        "schedule_ignored"
    ]

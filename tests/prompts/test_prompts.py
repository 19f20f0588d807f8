"""Question sets, names that are none, synthetic prompts of exact length."""

from __future__ import annotations

import re

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from playground import prompts
from playground.domain.errors import InvalidInput
from playground.i18n import say_message
from playground.prompts.synthetic import synthetic

WORDS = prompts.vocabulary()
SIZES = {
    "arithmetic": 12,
    "articles": 2,
    "chat": 12,
    "code": 8,
    "edit": 6,
    "mixed": 12,
    "short": 10,
    "short-among-long": 12,
    "short-among-medium": 12,
    "summarise": 6,
    "uneven": 8,
    "zh": 8,
}


def test_built_in_sets() -> None:
    assert {name: len(prompts.load(name)) for name in prompts.names()} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_no_prompt_comes_twice(name: str) -> None:
    found = [prompt.conversation for prompt in prompts.load(name)]
    assert len(set(found)) == len(found)


def test_sets_are_what_they_say() -> None:
    assert all(re.search("[\u4e00-\u9fff]", p.conversation[-1].content) for p in prompts.load("zh"))
    assert all("```" in p.conversation[-1].content for p in prompts.load("edit"))
    lengths = [p.max_tokens for p in prompts.load("mixed")]
    assert min(n for n in lengths if n) <= 8
    assert max(n for n in lengths if n) >= 1000
    assert [p.max_tokens for p in prompts.load("articles")] == [100, 1000]
    # Alone and among long ones the same short prompts are asked.
    short = set(prompts.load("short"))
    assert all(len(set(prompts.load(f"short-among-{others}")) - short) == 2 for others in ("long", "medium"))


@pytest.mark.parametrize(
    ("name", "message_id", "hint"),
    [
        ("chatt", "prompts.no_such_set", "chat"),
        ("missing.txt", "prompts.unreadable", "missing.txt"),
        ("nul\0.txt", "prompts.unreadable", "null byte"),
        ("nul\0", "prompts.no_such_set", "nul"),
        ("half\ud83d.txt", "prompts.unreadable", "half\ufffd.txt"),
    ],
    ids=["set", "file", "NUL", "set with NUL", "half an emoji"],
)
def test_missing(name: str, message_id: str, hint: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        prompts.load(name)
    assert caught.value.message_id == message_id
    assert hint in say_message(caught.value)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """Byte-level pairs, as in the models' own, trained on the built-in sets in a moment."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    corpus = [message.content for name in SIZES for p in prompts.load(name) for message in p.conversation]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet))
    return made


@pytest.mark.parametrize("tokens", [1, 2, 3, 7, 50, 1000])
def test_synthetic_length(tokenizer: Tokenizer, tokens: int) -> None:
    found = synthetic(tokenizer, tokens, 5, 3, WORDS, max_tokens=9)
    assert len(found) == 5
    for prompt in found:
        assert len(tokenizer.encode(prompt.conversation[0].content, add_special_tokens=False).ids) == tokens
        assert prompt.max_tokens == 9


def test_a_tokenizer_that_truncates_does_not_mislead(tokenizer: Tokenizer) -> None:
    cutting = Tokenizer.from_str(tokenizer.to_str())
    cutting.enable_truncation(8)
    (prompt,) = synthetic(cutting, 30, 1, 1, WORDS)
    assert len(tokenizer.encode(prompt.conversation[0].content).ids) == 30
    assert cutting.truncation is not None


def test_synthetic_prompts_follow_the_seed(tokenizer: Tokenizer) -> None:
    first, again, other = (synthetic(tokenizer, 30, 4, seed, WORDS) for seed in (1, 1, 2))
    assert first == again
    assert not set(first) & set(other)
    assert len(set(first)) == 4


def test_generated_prompts_are_left_out_once_stopped(tokenizer: Tokenizer) -> None:
    """A million tokens ten thousand times once went on after Stop, with everything else standing still."""
    asked = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 40

    few = synthetic(tokenizer, 1000, 10_000, 1, WORDS, stopped=stopped)
    assert 0 < len(few) < 10
    assert not synthetic(tokenizer, 10**9, 10_000, 1, WORDS, stopped=lambda: True)

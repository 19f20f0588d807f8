"""Prompts of a given length in tokens, made of shuffled plain words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from random import Random

from tokenizers import Tokenizer

from playground.domain.spec.workload import ChatMessage, Prompt


def synthetic(
    tokenizer: Tokenizer,
    tokens: int,
    count: int,
    seed: int,
    vocabulary: Sequence[str],
    max_tokens: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Prompt, ...]:
    """`count` prompts of shuffled words of the vocabulary, each `tokens` long by this tokenizer.

    The chat template's own tokens come on top. The same seed gives the same prompts; they share no prefix beyond
    chance. Where no text has exactly that length, a shorter one is used. Once `stopped`, the rest is left out.
    """
    if tokenizer.truncation or tokenizer.padding:
        # Some models' files set these, which would hide the true length. The caller's tokenizer stays unchanged.
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
    random = Random(seed)
    wanted = takewhile(lambda _: not stopped(), range(count))
    texts = (_of_length(tokenizer, tokens, vocabulary, random, stopped) for _ in wanted)
    return tuple(
        Prompt(conversation=(ChatMessage(role="user", content=text),), max_tokens=max_tokens) for text in texts
    )


def _of_length(
    tokenizer: Tokenizer, tokens: int, words: Sequence[str], random: Random, stopped: Callable[[], bool]
) -> str:
    """A text of that many tokens: words until it is too long, then fewer, then short ones to fill up. Once
    `stopped`, a text of any length."""

    def length(chosen: list[str]) -> int:
        # Unlike `encode`, this lets other threads run meanwhile: a long text takes seconds.
        return len(tokenizer.encode_batch_fast([" ".join(chosen)], add_special_tokens=False)[0])

    chosen = [random.choice(words)]
    while not stopped() and (now := length(chosen)) < tokens:
        # In common tokenizers a word is at least one token, so that one pass is enough.
        chosen += random.choices(words, k=tokens - now)
    # Length grows with the words: bisect for the most words that fit.
    low, high = 1, len(chosen)
    while low < high and not stopped():
        middle = (low + high + 1) // 2
        low, high = (middle, high) if length(chosen[:middle]) <= tokens else (low, middle - 1)
    chosen = chosen[:low] if length(chosen[:1]) <= tokens else ["a"]
    while not stopped() and length([*chosen, "a"]) <= tokens:
        chosen.append("a")
    return " ".join(chosen)

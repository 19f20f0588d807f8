"""Asks the sides, after the last round, for what the output check needs. Nothing here is timed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Annotated

from pydantic import BaseModel, Field

from playground.domain.answers.token_comparison import TokenIds, check_greedy
from playground.domain.record.evidence import OutputEvidence, Repeats, TopLogprobs
from playground.domain.spec.workload import Conversation, Sampling
from playground.load.endpoint import PATHS, Endpoint

from .client import AnswerClient, OnProgress, together

# At most so many differing answers of each side are examined.
LOOKED_INTO = 8
# vLLM gives at most this many logprobs unless --max-logprobs allows more.
TOP = 20
REPEATS = 20
REPEATED_TOKENS = 64
TOKEN_ID = re.compile(r"token_id:(\d+)")


class _Logprobs(BaseModel):
    tokens: list[str]
    top_logprobs: list[dict[str, float]]


class _Choice(BaseModel):
    token_ids: tuple[int, ...] | None = None
    prompt_token_ids: list[int] | None = None
    logprobs: _Logprobs | None = None


class _Answer(BaseModel):
    """The parts of a whole answer that are read. A chat gives the prompt's ids here, a completion in its
    choice."""

    choices: Annotated[list[_Choice], Field(min_length=1)]
    prompt_token_ids: list[int] | None = None


async def examine(
    sides: Sequence[Endpoint],
    conversations: Sequence[Conversation],
    sampling: Sampling,
    answers: Sequence[Sequence[TokenIds | None]],
    timeout_s: float,
    on_progress: OnProgress = lambda done, total: None,
) -> OutputEvidence:
    """Collect the evidence that `domain.answers.agreement` reads. `conversations` and `answers` come from its
    `answers_of`.

    At temperature 0: both sides' top logprobs at the token where a side's answer diverges from the first side's,
    for the first 8 such answers of each side. Both sides get the same context (the prompt's ids and the common
    beginning of the answers) and generate one more token. That is a prefill: it shows how the model scores the
    context, without the rounding of the decoding step, or of the verification of several drafts, that produced the
    answer.

    Above 0: 20 answers of each side to the first conversation. All seeds differ, also between sides: equal seeds
    would draw equal random numbers, and the test assumes independent samples.

    An answer that an endpoint does not give, or not in time, is left out; nothing is raised for it. `on_progress`
    receives how many requests are answered, and how many there are. Cancel the coroutine to stop: requests under
    way are dropped.
    """
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(AnswerClient(endpoint, timeout_s)) for endpoint in sides]
        if sampling.temperature > 0:
            return OutputEvidence(repeats=await _repeats(servers, conversations[0], sampling, on_progress))
        if _penalised(sampling):
            return OutputEvidence()
        return OutputEvidence(logprobs=await _logprobs(servers, conversations, answers, on_progress))


def _penalised(sampling: Sampling) -> bool:
    """Whether penalties apply. Logprobs are the model's own, before penalties, so they do not explain the
    choice."""
    return bool(sampling.presence_penalty or sampling.frequency_penalty or (sampling.repetition_penalty or 1) != 1)


async def _logprobs(
    servers: Sequence[AnswerClient],
    conversations: Sequence[Conversation],
    answers: Sequence[Sequence[TokenIds | None]],
    on_progress: OnProgress,
) -> tuple[TopLogprobs, ...]:
    places = set()
    for side in range(1, len(servers)):
        divergences = check_greedy(list(zip(answers[0], answers[side], strict=True))).divergences
        for divergence in divergences[:LOOKED_INTO]:
            places |= {(s, divergence.pair, divergence.position) for s in (0, side)}

    async def look(side: int, prompt: int, position: int) -> TopLogprobs | None:
        beginning = (answers[side][prompt] or ())[:position]
        top = await _next_token(servers[side], conversations[prompt], beginning)
        return None if top is None else TopLogprobs(side, prompt, position, top)

    tops = await together([look(*place) for place in sorted(places)], on_progress)
    return tuple(top for top in tops if top is not None)


async def _repeats(
    servers: Sequence[AnswerClient], conversation: Conversation, sampling: Sampling, on_progress: OnProgress
) -> tuple[Repeats, ...]:
    # The server takes seeds of 64 bits.
    first = min(sampling.seed or 0, 2**63 - REPEATS * len(servers))

    def drawn(seed: int) -> Sampling:
        return sampling.model_copy(update={"seed": seed, "max_tokens": min(sampling.max_tokens, REPEATED_TOKENS)})

    requests = [
        _ids(server, conversation, drawn(first + side * REPEATS + number))
        for side, server in enumerate(servers)
        for number in range(REPEATS)
    ]
    answers = await together(requests, on_progress)
    return tuple(
        Repeats(side, tuple(answers[side * REPEATS : (side + 1) * REPEATS])) for side in range(len(servers))
    )


async def _ids(server: AnswerClient, conversation: Conversation, sampling: Sampling) -> tuple[int, ...] | None:
    """The token ids of an answer."""
    answer = await _answer(server, conversation, sampling)
    return answer.choices[0].token_ids if answer else None


async def _next_token(
    server: AnswerClient, conversation: Conversation, beginning: TokenIds
) -> dict[int, float] | None:
    """The top logprobs of the token after this beginning of an answer."""
    prompt = await _answer(server, conversation, Sampling(max_tokens=1))
    ids = (prompt.prompt_token_ids or prompt.choices[0].prompt_token_ids) if prompt else None
    if ids is None:
        return None
    body = {
        "model": server.endpoint.model,
        "prompt": [*ids, *beginning],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": TOP,
        "return_tokens_as_token_ids": True,
    }
    answer = _read(await server.ask(PATHS["completions"], body))
    return _top(answer.choices[0].logprobs) if answer else None


async def _answer(server: AnswerClient, conversation: Conversation, sampling: Sampling) -> _Answer | None:
    """The whole answer; also None where the endpoint gives no token ids, since the answer would be useless
    then."""
    if not server.endpoint.capabilities.token_ids:
        return None
    return _read(await server.answer(conversation, sampling))


def _read(content: bytes | None) -> _Answer | None:
    try:
        return None if content is None else _Answer.model_validate_json(content)
    except ValueError:
        return None


def _top(logprobs: _Logprobs | None) -> dict[int, float] | None:
    """Logprobs by token id. None where the chosen token is not the most likely one: the server then applies a
    penalty of its own (some models' generation_config.json has one), which logprobs don't show."""
    if logprobs is None or not logprobs.tokens or not logprobs.top_logprobs:
        return None
    top = {_id(name): value for name, value in logprobs.top_logprobs[0].items()}
    chosen = _id(logprobs.tokens[0])
    if None in top or chosen not in top or top[chosen] < max(top.values()):
        return None
    return {token: value for token, value in top.items() if token is not None}


def _id(name: str) -> int | None:
    matched = TOKEN_ID.fullmatch(name)
    return int(matched[1]) if matched else None

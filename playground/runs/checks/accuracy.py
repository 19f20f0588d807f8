"""Asks all sides a small set of exactly scored tasks, after the last round. Nothing here is timed.

A set is a file of `tasks/`: JSON Lines, each with a question and all answers that are right.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

from playground.domain.record.evidence import AccuracyEvidence, Task
from playground.domain.spec.workload import ChatMessage, Conversation, Sampling
from playground.load.endpoint import Endpoint

from .client import AnswerClient, OnProgress, together

FOLDER = Path(__file__).parent / "tasks"
GREEDY = Sampling(max_tokens=24)
# Examples sent before each question, so that a small model also answers in one word.
EXAMPLES = (
    ("What is 10 + 5?", "15"),
    ("What is the capital of Italy?", "Rome"),
    ("Repeat exactly: tree house", "tree house"),
    ("一年有几个季节？", "四个"),
)


class _Said(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    """One choice of an answer: a chat's holds a message, a completion's a text."""

    message: _Said | None = None
    text: str | None = None


class _Answer(BaseModel):
    choices: Annotated[list[_Choice], Field(min_length=1)]


@cache
def tasks() -> tuple[Task, ...]:
    """All built-in tasks, in a fixed order."""
    lines = [line for path in sorted(FOLDER.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    entries = [json.loads(line) for line in lines]
    return tuple(Task(entry["question"], tuple(entry["answers"])) for entry in entries)


async def examine(
    sides: Sequence[Endpoint], timeout_s: float, on_progress: OnProgress = lambda done, total: None
) -> AccuracyEvidence:
    """Every side's answer to every built-in task, at temperature 0.

    An answer that an endpoint refuses, or does not give in time, is None; nothing is raised for it. Cancel the
    coroutine to stop: requests under way are dropped.
    """
    questions = tasks()
    async with AsyncExitStack() as stack:
        servers = [await stack.enter_async_context(AnswerClient(endpoint, timeout_s)) for endpoint in sides]
        answers = await together(
            [_answer_to(server, task) for server in servers for task in questions], on_progress
        )
    count = len(questions)
    rows = tuple(tuple(answers[start : start + count]) for start in range(0, len(answers), count))
    return AccuracyEvidence(questions, rows)


async def _answer_to(server: AnswerClient, task: Task) -> str | None:
    content = await server.answer(_conversation(task.question), GREEDY)
    if content is None:
        return None
    try:
        choice = _Answer.model_validate_json(content).choices[0]
    except ValueError:
        return None
    return (choice.message.content if choice.message else choice.text) or ""


def _conversation(question: str) -> Conversation:
    turns = [
        message
        for example, answer in EXAMPLES
        for message in (ChatMessage(role="user", content=example), ChatMessage(role="assistant", content=answer))
    ]
    return (*turns, ChatMessage(role="user", content=question))

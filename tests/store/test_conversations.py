"""A conversation is stored once, however many requests sent it."""

from __future__ import annotations

import sqlite3

from support.stored_runs import run, saved

from playground.config import Config
from playground.domain.record.run import Trial
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.workload import ChatMessage
from playground.store import History

LONG = 100_000


def test_a_long_prompt_takes_its_space_once(config: Config) -> None:
    history, sending = History(config.db), run(prompt="x" * LONG)
    for side in sending.sides:
        side.trials = [
            Trial(round=number, requests=[RequestTrace(sending.workload.conversation, ended=True)] * 20)
            for number in range(3)
        ]
    saved(history, sending)
    sending.status = "done"
    history.finish(sending)
    assert history.get("r1") == sending
    with sqlite3.connect(config.db) as db:
        [(stored,)] = db.execute("SELECT sum(length(text)) FROM conversations")
        [(beside,)] = db.execute("SELECT sum(length(conversation)) FROM requests")
    assert LONG < stored < 2 * LONG
    assert beside == 0


def test_conversations_that_differ_stay_apart(config: Config) -> None:
    history, sending = History(config.db), run()
    first, second = ((ChatMessage(role=role, content="a"),) for role in ("user", "assistant"))
    requests = [RequestTrace(first, ended=True), RequestTrace(second, ended=True), RequestTrace((), ended=True)]
    sending.sides[0].trials = [Trial(requests=requests)]
    saved(history, sending)
    stored = history.get("r1")
    assert stored is not None
    assert stored.sides[0].requests == requests

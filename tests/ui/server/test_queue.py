"""Answers that no page fetches, and pages with absurd ids, take no memory."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
import pytest
from fastapi import HTTPException
from gradio import queueing
from gradio.server_messages import ProcessCompletedMessage

from playground.ui.server import queue, sessions
from playground.ui.server.queue import Queue

LONG = "x" * (sessions.LONGEST_ID + 1)


@pytest.fixture
def blocks() -> gr.Blocks:
    with gr.Blocks() as made:
        gr.Button().click(lambda: None)
    return made


async def event(waiting: Queue, page: str) -> queueing.Event:
    """An event of the page, which waits."""
    body = SimpleNamespace(session_hash=page, fn_index=0, trigger_id=None, batched=False)
    done, event_id, _ = await waiting.push(body, None, None)
    assert done
    return cast(queueing.Event, waiting.event_ids_to_events[event_id])


def answer(size: int) -> ProcessCompletedMessage:
    output: dict[str, Any] = {"data": ["x" * size, {"value": "x" * size}]}
    return ProcessCompletedMessage(output=output, success=True)


async def test_the_page_with_the_most_unread_loses_its_own(
    blocks: gr.Blocks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "MOST_UNREAD", 1000)
    waiting = Queue(blocks)
    much, little = await event(waiting, "much"), await event(waiting, "little")
    waiting.send_message(little, answer(50))
    for _ in range(10):
        waiting.send_message(much, answer(100))
    kept = waiting.pending_messages_per_session
    assert "much" not in kept
    assert kept["little"].qsize() >= 1
    # It may come back.
    waiting.send_message(await event(waiting, "much"), answer(1))
    assert "much" in kept


async def test_a_page_that_reads_loses_nothing(blocks: gr.Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_UNREAD", 1000)
    waiting = Queue(blocks)
    pressed = await event(waiting, "page")
    messages = waiting.pending_messages_per_session["page"]
    for _ in range(20):
        while not messages.empty():
            messages.get_nowait()
        waiting.send_message(pressed, answer(400))
    assert waiting.pending_messages_per_session["page"] is messages


async def test_a_page_s_id_is_short(blocks: gr.Blocks) -> None:
    body = SimpleNamespace(session_hash=LONG, fn_index=0)
    assert (await Queue(blocks).push(body, None, None))[0] is False
    kept = sessions.Sessions(blocks)
    with pytest.raises(HTTPException):
        kept[LONG]
    assert not kept.session_data


async def test_pages_that_have_gone_are_forgotten(blocks: gr.Blocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "MOST_PAGES", 5)
    waiting = Queue(blocks)
    waiting.pending_messages_per_session.max_size = 3
    for number in range(20):
        await event(waiting, f"page {number}")
    assert len(waiting.pending_event_ids_session) <= 6

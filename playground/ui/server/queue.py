"""Gradio's queue with limits on what it keeps for visitors who do not fetch it.

Gradio keeps the answers to a page's events until the page reads them: two thousand pages, whatever size.
"""

from __future__ import annotations

from typing import Any

import gradio as gr
from gradio import queueing
from gradio.server_messages import EventMessage, ProcessCompletedMessage

from .sessions import LONGEST_ID

# Characters of answers that wait to be read, all pages together; beyond that the page with the most loses its own.
MOST_UNREAD = 64 * 1024**2
# Pages whose events are remembered.
MOST_PAGES = 4000


class Queue(queueing.Queue):
    def __init__(self, page: gr.Blocks) -> None:
        super().__init__(True, page.max_threads, 1, None, page)
        self._unread: dict[str, int] = {}
        # They are not shown anywhere.
        self.ANALYTICS_MAX_EVENTS = 1

    def compute_analytics_summary(self, records: object) -> Any:
        return self.cached_event_analytics_summary

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        if len(body.session_hash or "") > LONGEST_ID:
            return False, "bad session", "error"
        if len(self.pending_event_ids_session) > MOST_PAGES:
            for page in self.pending_event_ids_session.keys() - self.pending_messages_per_session.keys():
                del self.pending_event_ids_session[page]
        return await super().push(body, request, username)

    def send_message(self, event: queueing.Event, event_message: EventMessage) -> None:
        page = event.session_hash
        if (messages := self.pending_messages_per_session.get(page)) is None:
            # Its answers were dropped.
            return
        before = 0 if messages.empty() else self._unread.get(page, 0)
        super().send_message(event, event_message)
        if isinstance(event_message, ProcessCompletedMessage):
            self._unread[page] = before + _characters(event_message.output)
            if sum(self._unread.values()) > MOST_UNREAD:
                self._drop()

    def _drop(self) -> None:
        kept = self.pending_messages_per_session
        self._unread = {
            page: size for page, size in self._unread.items() if page in kept and not kept[page].empty()
        }
        while sum(self._unread.values()) > MOST_UNREAD:
            page = max(self._unread, key=lambda page: self._unread[page])
            del self._unread[page], kept[page]
            self.pending_event_ids_session.pop(page, None)


def _characters(value: object) -> int:
    match value:
        case str():
            return len(value)
        case dict():
            return sum(map(_characters, value.values()))
        case list() | tuple():
            return sum(map(_characters, value))
    return 1

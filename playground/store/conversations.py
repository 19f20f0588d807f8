"""Conversations, each stored once however many requests sent it.

Requests refer to a conversation by number. Those of older databases hold its text themselves and keep it: moving
gigabytes would take minutes in which the history can't be used. Nothing here counts references: pruning removes
those that no request refers to.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256

from sqlite_utils import Database

from playground.domain.spec.workload import ChatMessage, Conversation


def text_of(conversation: Conversation) -> str:
    return json.dumps([message.model_dump() for message in conversation], ensure_ascii=False)


def conversation_of(text: str) -> Conversation:
    return tuple(ChatMessage(**message) for message in json.loads(text))


class Writer:
    """Stores conversations within one transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._numbers: dict[Conversation, int] = {}

    def number(self, conversation: Conversation) -> int:
        """The conversation's number; it is stored now if it is new."""
        if conversation not in self._numbers:
            self._numbers[conversation] = self._stored(text_of(conversation))
        return self._numbers[conversation]

    def _stored(self, text: str) -> int:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        query = "SELECT id FROM conversations WHERE hash = ?"
        known = next(self._db.query(query, [digest]), None)
        if known is None:
            self._db.table("conversations").insert({"hash": digest, "text": text})
            known = next(self._db.query(query, [digest]))
        return int(known["id"])


def of_run(db: Database, run_id: str) -> Mapping[int, Conversation]:
    """The conversations that the run's requests refer to, by number."""
    query = (
        "SELECT id, text FROM conversations"
        " WHERE id IN (SELECT conversation_id FROM requests WHERE run_id = ? AND conversation_id IS NOT NULL)"
    )
    return {row["id"]: conversation_of(row["text"]) for row in db.query(query, [run_id])}

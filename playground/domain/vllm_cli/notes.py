"""What a reader says beside what it read: what it translated, and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from playground.domain.message import Message

# Longer pieces of the text are cut.
LONGEST = 60
# Nobody reads more notes.
MOST = 100


@dataclass(frozen=True, slots=True)
class LeftOut:
    """`what`: a piece of the text, without values that may be secrets. `why`: a sentence."""

    what: str
    why: Message


@dataclass
class Notes:
    """Collects the notes of all readers, each once."""

    translated: list[Message] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)

    def copy(self) -> Notes:
        """For an attempt, which may fail."""
        return Notes([*self.translated], [*self.left_out])

    def become(self, attempt: Notes) -> None:
        self.translated, self.left_out = attempt.translated, attempt.left_out

    def say(self, message_id: str, **params: object) -> None:
        message = Message(message_id, params)
        if len(self.translated) < MOST and message not in self.translated:
            self.translated.append(message)

    def leave(self, what: str, message_id: str, **params: object) -> None:
        left = LeftOut(shortened(what), Message(message_id, params))
        if len(self.left_out) == MOST:
            self.left_out.append(LeftOut("…", Message("paste.many", {"most": MOST})))
        elif len(self.left_out) < MOST and left not in self.left_out:
            self.left_out.append(left)


def shortened(text: str) -> str:
    """The text on one line, cut to a length that fits into a sentence."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"

"""What was read of a prompts file, and what was not, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass

from playground.domain.message import Message


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that happened to `count` entries; `first` are the places of the first few."""

    why: Message
    count: int
    first: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class PromptsRead:
    """`read` prompts can be sent, and `sampled` of them are: all, or as many as the host allows, drawn with
    `seed`.

    `skipped` entries are no prompts. `changed` ones are sent in part.
    """

    read: int
    sampled: int
    seed: int
    skipped: tuple[Remark, ...] = ()
    changed: tuple[Remark, ...] = ()

    @property
    def remarks(self) -> list[Message]:
        """A sentence on everything that is not sent as it stands in the file."""
        drawn: dict[str, object] = {"sampled": self.sampled, "read": self.read, "seed": self.seed}
        return [
            *([Message("prompts.sampled", drawn)] if self.sampled < self.read else []),
            *(_sentence("prompts.skipped", remark) for remark in self.skipped),
            *(_sentence("prompts.changed", remark) for remark in self.changed),
        ]


def _sentence(message_id: str, remark: Remark) -> Message:
    return Message(message_id, {"count": remark.count, "why": remark.why, "place": remark.first[0]})

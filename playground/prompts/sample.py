"""Keeps as many prompts as the host allows while any number of them passes by, and counts what is left out."""

from __future__ import annotations

from collections import Counter
from random import Random

from playground.domain.limit_checks import characters, check_prompts
from playground.domain.limits import Limits
from playground.domain.message import Message
from playground.domain.record.prompts import PromptsRead, Remark
from playground.domain.spec.workload import Prompt

# Of how many entries the place is told.
FIRST = 20


class Remarks:
    """Counts by reason, with the first places."""

    def __init__(self) -> None:
        # By the reasons' ids: they have no parameters.
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[Message]] = {}

    def add(self, why: Message, place: Message) -> None:
        self._counts[why.message_id] += 1
        places = self._first.setdefault(why.message_id, [])
        if len(places) < FIRST:
            places.append(place)

    def all(self) -> tuple[Remark, ...]:
        return tuple(
            Remark(Message(why), count, tuple(self._first[why])) for why, count in self._counts.most_common()
        )


class Sample:
    """A uniform sample of what is added, in its order (reservoir sampling, Vitter's algorithm R)."""

    def __init__(self, limits: Limits, seed: int) -> None:
        self.read = 0
        self._limits = limits
        self._seed = seed
        self._random = Random(seed)
        self._most = limits.prompts
        self._kept: list[tuple[int, Prompt]] = []
        self._characters = 0

    def add(self, prompt: Prompt) -> None:
        """Raises InvalidInput for a prompt that is above a limit by itself."""
        check_prompts(self._limits, [prompt])
        self.read += 1
        if len(self._kept) < self._most:
            self._kept.append((self.read, prompt))
        elif (place := self._random.randrange(self.read)) < self._most:
            self._characters -= characters(self._kept[place][1])
            self._kept[place] = (self.read, prompt)
        else:
            return
        self._characters += characters(prompt)
        while self._characters > self._limits.prompts_characters:
            # A smaller sample, also from here on: a random part of a random part.
            place = self._random.randrange(len(self._kept))
            self._kept[place], self._kept[-1] = self._kept[-1], self._kept[place]
            self._characters -= characters(self._kept.pop()[1])
            self._most = len(self._kept)

    def prompts(self) -> tuple[Prompt, ...]:
        return tuple(prompt for _, prompt in sorted(self._kept, key=lambda pair: pair[0]))

    def read_with(self, skipped: Remarks, changed: Remarks) -> PromptsRead:
        return PromptsRead(self.read, len(self._kept), self._seed, skipped.all(), changed.all())

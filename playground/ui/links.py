"""The page's addresses: which run, sweep or preset a link opens. They hold names and ids only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# Ids and names of presets are far shorter.
LONGEST = 100
MOST_COMPARED = 4
NAMES = ("preset", "recording", "run", "sweep", "reuse", "replay")


@dataclass(frozen=True)
class Link:
    """What the address asks for. `saved`: the id of a run or sweep; `reuse`: to fill in its settings, instead of
    showing it; `replay`: to play it; `recording`: the name of a shipped one; `compared`: the ids of runs to put
    side by side."""

    preset: str = ""
    saved: str = ""
    recording: str = ""
    reuse: bool = False
    replay: bool = False
    compared: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Link:
        """By the names and values of an address's query, which may be anything."""
        values = {name: query.get(name, "").strip()[:LONGEST] for name in NAMES}
        ids = query.get("compare", "").split(",")[:MOST_COMPARED]
        return cls(
            preset=values["preset"],
            saved=values["run"] or values["sweep"],
            recording=values["recording"],
            reuse=values["reuse"] == "1",
            replay=values["replay"] == "1",
            compared=tuple(saved.strip()[:LONGEST] for saved in ids if saved.strip()),
        )

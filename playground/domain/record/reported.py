"""Where the figures of a side come from that another tool measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tool = Literal["vllm_bench", "guidellm"]


@dataclass(frozen=True, slots=True)
class Reported:
    """`document`: the result as the tool wrote it, from which the figures are read. `version`: the tool's, if it
    says so."""

    tool: Tool
    version: str | None
    document: str

"""Prompts: built-in sets, users' files, and synthetic prompts of a given length.

Everything that a file holds is either sent or counted with the reason: see `PromptsRead`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tokenizers import Tokenizer

from playground.domain.errors import InvalidInput
from playground.domain.limits import DEFAULTS, Limits
from playground.domain.spec.measurement import Measurement, SyntheticPrompts
from playground.domain.spec.workload import Prompt, Workload
from playground.domain.validation import nearest_of

from .file import SUFFIXES, PromptSet, read
from .synthetic import synthetic

__all__ = ["SUFFIXES", "PromptSet", "load", "load_set", "names", "of_measurement", "read"]

FOLDER = Path(__file__).parents[2] / "presets" / "prompts"


def names() -> list[str]:
    """All built-in sets."""
    return sorted(path.stem for path in FOLDER.glob("*.jsonl"))


def load(name_or_path: str, limits: Limits = DEFAULTS) -> tuple[Prompt, ...]:
    """The prompts of `load_set`."""
    return load_set(name_or_path, limits).prompts


def load_set(name_or_path: str, limits: Limits = DEFAULTS, seed: int = 0) -> PromptSet:
    """A built-in set by name, or a file by path. Raises InvalidInput, which names file, place and remedy."""
    if name_or_path in names():
        return read(FOLDER / f"{name_or_path}.jsonl", limits, seed)
    path = Path(name_or_path)
    if not path.suffix and not path.exists():
        raise InvalidInput("prompts.no_such_set", name=name_or_path, nearest=nearest_of(name_or_path, names()))
    return read(path, limits, seed)


def of_measurement(
    measurement: Measurement,
    workload: Workload,
    seed: int,
    tokenizer: Tokenizer | None,
    limits: Limits = DEFAULTS,
    stopped: Callable[[], bool] = lambda: False,
) -> PromptSet:
    """The prompts of a measurement. `tokenizer` is the first side's. Raises InvalidInput if synthetic prompts lack
    it, and for what is above the limits. Synthetic ones are left out once `stopped`."""
    match measurement.prompts:
        case None:
            return PromptSet((Prompt(conversation=workload.conversation),))
        case SyntheticPrompts(input_tokens=tokens, count=count):
            if tokenizer is None:
                raise InvalidInput("prompts.no_tokenizer")
            return PromptSet(synthetic(tokenizer, tokens, count, seed, vocabulary(), stopped=stopped))
        case name:
            return load_set(name, limits, seed)


def vocabulary() -> list[str]:
    """Plain words, of which synthetic prompts are made."""
    return sorted({word for prompt in load("chat") for word in prompt.conversation[-1].content.split()})

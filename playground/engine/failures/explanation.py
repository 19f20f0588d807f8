"""Explains any vLLM log, also of an engine that the playground did not start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from pydantic import ValidationError

from playground.domain.errors import InvalidInput, PlaygroundError
from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import DraftModel
from playground.domain.vllm_cli import paste

from .causes import BY_NAME
from .diagnosis import Diagnosis, examine, figures_of
from .log_file import LogFile, read_log
from .remedies import Remedy
from .stages import ANSWERING, stage_message
from .start_log import ARGUMENTS, StartLog, last_start

# Where the log does not say what the engine was started with.
ASSUMED = EngineSettings(target="model")
DRAFTED = ASSUMED.model_copy(update={"speculation": DraftModel(model="draft", num_speculative_tokens=5)})


@dataclass(frozen=True)
class Explanation:
    """What went wrong. `remedy`: None where nothing failed. `unread_bytes`: what was left out of the middle of a
    very long log."""

    cause: str | None
    sentence: Message
    evidence: tuple[int, ...]
    stage: str | None
    remedy: Remedy | None
    unread_bytes: int = 0


def explain(file: BinaryIO, name: str, most_bytes: int) -> Explanation:
    """Why the engine failed whose log this is; more than `most_bytes` of it are read from both ends. Blocking.

    Raises InvalidInput if it is empty, no text, or has no line that an engine or Python prints.
    """
    log = read_log(file, name, most_bytes)
    start = last_start(log.lines)
    diagnosis = examine(start, None)
    if diagnosis.cause is None and not start.known_lines and start.stage is None:
        raise InvalidInput("explain.no_log", where=name)
    return _explanation(start, diagnosis, log, name)


def _explanation(start: StartLog, diagnosis: Diagnosis, log: LogFile, name: str) -> Explanation:
    if diagnosis.cause is None:
        message_id = "explain.healthy" if diagnosis.stage == ANSWERING else "explain.no_failure"
        sentence, remedy = Message(message_id, {"stage": stage_message(diagnosis.stage)}), None
    else:
        message = diagnosis.message
        params = {**figures_of(start), **message.params, "log": name}
        sentence = Message(message.message_id, params)
        remedy = Remedy(Message(f"remedy.{diagnosis.cause}", params), _changes(start, diagnosis, params))
    return Explanation(diagnosis.cause, sentence, diagnosis.evidence, diagnosis.stage, remedy, log.unread_bytes)


def _changes(start: StartLog, diagnosis: Diagnosis, params: Mapping[str, object]) -> tuple[Change, ...]:
    """What the cause's rule offers, as far as the settings allow it that the log names."""
    settings = settings_of(start.args) or ASSUMED
    speculates = diagnosis.stage == "loading_draft" or params.get("model") == "SpeculativeConfig"
    drafts = diagnosis.cause in ("draft_mismatch", "vocabulary", "draft_parallel", "drafts_divisible", "method")
    if not settings.speculates and (speculates or drafts):
        settings = settings.model_copy(update={"speculation": DRAFTED.speculation})
    assert diagnosis.cause is not None
    offered = [c for c in BY_NAME[diagnosis.cause].changes(params, settings) if _allowed(c, settings)]
    # Where nothing else is offered, a knob that the log does not name may still have been set, by a file.
    return tuple([c for c in offered if c.apply(settings) != settings] or offered)


def _allowed(change: Change, settings: EngineSettings) -> bool:
    try:
        change.apply(settings)
    except ValidationError:
        return False
    return True


def settings_of(args: str) -> EngineSettings | None:
    """The settings that a log's own line of arguments names; None if it names none that can be read."""
    try:
        return paste.read(ARGUMENTS + args).settings if args else None
    except PlaygroundError:
        return None

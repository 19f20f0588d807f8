"""The path of a side's engine for a reader: one line, and a table."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from html import escape

from playground.domain.message import Message
from playground.domain.record.engine_path import EnginePath
from playground.i18n import Locale, say, say_message

DIFFERS = ' class="differs"'


def path_line(path: EnginePath, locale: Locale = "en") -> str:
    """What matters most for the speed, as far as it is known."""
    parts = [say("path.runner", locale, runner=path.model_runner)] if path.model_runner else []
    if path.async_scheduling is not None:
        parts.append(say("path.async_on" if path.async_scheduling else "path.async_off", locale))
    if path.attention_backend:
        parts.append(path.attention_backend)
    if path.cudagraph_mode:
        parts.append(say("path.graphs", locale, mode=path.cudagraph_mode))
    return " · ".join(parts)


def path_rows(path: EnginePath, locale: Locale = "en") -> list[tuple[str, str, str]]:
    """The field, its name and its value, of each part that the engine tells."""
    return [
        (field.name, say(f"path.{field.name}", locale), text)
        for field in fields(path)
        if (text := _text(path, field.name, locale))
    ]


def path_html(path: EnginePath | None, unset: Collection[str], locale: Locale) -> str:
    """The line, with the table folded behind it; `unset` names what differs though nobody set it. Empty where the
    engine tells nothing."""
    rows = path_rows(path, locale) if path is not None else []
    if path is None or not rows:
        return ""
    cells = "".join(
        f"<tr{DIFFERS if field in unset else ''}><th>{escape(name)}</th><td>{escape(text)}</td></tr>"
        for field, name, text in rows
    )
    title, line = escape(say("path.title", locale)), escape(path_line(path, locale))
    return f'<details class="path"><summary>{title}: {line}</summary><table>{cells}</table></details>'


def _text(path: EnginePath, name: str, locale: Locale) -> str:
    value = path.text(name)
    return say_message(value, locale) if isinstance(value, Message) else value or ""

"""A check before the start, as a person and as a program reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

from .domain.changes import Change
from .domain.concerns import Concern, Remedy
from .domain.memory import GIB, Need
from .domain.pair import Verdict
from .preflight import SideCheck
from .text import Locale, say, say_problem

SCHEMA_VERSION = 1
FIXED_PARTS = ("weights", "draft_weights", "activations", "cuda_graphs", "other")
FITS = {True: "preflight.fits", False: "preflight.fits_not", None: "preflight.fits_unknown"}
VERDICTS: dict[Verdict, str] = {
    "works": "preflight.works",
    "works, but": "preflight.works_but",
    "will not work": "preflight.will_not_work",
}


def headline(check: SideCheck, locale: Locale = "en") -> str:
    """Whether it fits, and whether its pair works, in a few words."""
    words = [say(FITS[check.fits], locale)] if check.device is not None else []
    if check.pair is not None and check.pair.verdict is not None:
        words.append(say(VERDICTS[check.pair.verdict], locale))
    elif check.pair is not None and check.pair.method != "off":
        words.append(say("preflight.pair_unknown", locale))
    return " · ".join(words)


def parts(need: Need) -> dict[str, int]:
    """What the memory goes to, by the name of its sentence; the KV cache gets what is left."""
    found = {name: getattr(need, name) for name in FIXED_PARTS}
    return {**{name: size for name, size in found.items() if size}, "kv_cache": max(need.kv_available, 0)}


def facts(check: SideCheck, locale: Locale = "en") -> list[str]:
    """The numbers, in sentences."""
    need, device = check.need, check.device
    if need is None or device is None:
        return []
    told = say("preflight.of", locale, needed=need.total / GIB, available=need.budget / GIB, device=device.name)
    room = say(
        "preflight.room",
        locale,
        sequences=need.sequences,
        tokens=need.length,
        all=max(need.kv_available, 0) // need.kv_per_token,
    )
    return [told, room]


def reasons(check: SideCheck, locale: Locale = "en") -> list[str]:
    """Every concern, and the settings that mend it."""
    return [_reason(concern, concern in check.memory, locale) for concern in check.concerns]


def _reason(concern: Concern, memory: bool, locale: Locale) -> str:
    sentence = say_problem(concern.problem, locale)
    if not concern.remedies:
        return sentence
    offered = _joined("preflight.or", (_remedy(remedy, locale) for remedy in concern.remedies), locale)
    with_changes = "preflight.fit_with" if memory else "preflight.works_with"
    return f"{sentence} {say(with_changes, locale, changes=offered)}"


def _remedy(remedy: Remedy, locale: Locale) -> str:
    return _joined("preflight.and", (_change(change, locale) for change in remedy), locale)


def _change(change: Change, locale: Locale) -> str:
    value = say("preflight.default", locale) if change.value is None else change.value
    return f"{change.key.rpartition('.')[2]} = {str(value).lower() if isinstance(value, bool) else value}"


def _joined(message_id: str, texts: Iterable[str], locale: Locale) -> str:
    return reduce(lambda one, other: say(message_id, locale, one=one, other=other), texts)


def document(checks: Sequence[SideCheck], locale: Locale = "en") -> dict[str, Any]:
    """What `preflight --json` prints (playground/schema.json): bytes, null where unknown."""
    return {"schema": SCHEMA_VERSION, "sides": [_side(check, locale) for check in checks]}


def _side(check: SideCheck, locale: Locale) -> dict[str, Any]:
    need, device, pair = check.need, check.device, check.pair
    needed = need and {
        **{name: getattr(need, name) for name in FIXED_PARTS},
        "kv_cache": need.kv_least,
        "total": need.total,
    }
    cache = need and {
        "available_bytes": max(need.kv_available, 0),
        "bytes_per_token": need.kv_per_token,
        "sequence_tokens": need.length,
        "sequences": need.sequences,
    }
    return {
        "label": check.label,
        "fits": check.fits,
        "device": device
        and {"name": device.name, "total_bytes": device.total_bytes, "free_bytes": device.free_bytes},
        "needed_bytes": needed,
        "available_bytes": need and need.budget,
        "kv_cache": cache,
        "pair": pair
        and {
            "method": pair.method,
            "verdict": pair.verdict,
            "equal_ids": pair.equal_ids,
            "size_ratio": pair.size_ratio,
            "reasons": [say_problem(concern.problem, locale) for concern in pair.concerns],
        },
        "problems": [_problem(concern, locale) for concern in check.concerns],
    }


def _problem(concern: Concern, locale: Locale) -> dict[str, Any]:
    return {
        "id": concern.problem.message_id,
        "message": say_problem(concern.problem, locale),
        "level": concern.level,
        "certain": concern.certain,
        "changes": [
            [{"key": change.key, "value": change.value} for change in remedy] for remedy in concern.remedies
        ],
    }

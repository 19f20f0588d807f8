"""A check before the start, in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from playground.domain.fit.issue import Changes, FitIssue
from playground.domain.fit.memory import GIB, Need
from playground.domain.fit.pair import PairVerdict
from playground.domain.spec.change import Change
from playground.i18n import Locale, say, say_message
from playground.runs.sides.preflight import SideCheck

FIXED_PARTS = ("weights", "draft_weights", "activations", "cuda_graphs", "other")
FITS = {True: "preflight.fits", False: "preflight.fits_not", None: "preflight.fits_unknown"}
VERDICTS: dict[PairVerdict, str] = {
    "works": "preflight.works",
    "works, but": "preflight.works_but",
    "will not work": "preflight.will_not_work",
}


def headline(check: SideCheck, locale: Locale = "en") -> str:
    """Whether it fits, and whether its pair works, in a few words."""
    if check.absent:
        return say("preflight.absent", locale)
    words = [say(FITS[check.fits], locale)] if check.device is not None else []
    if check.pair is not None and check.pair.verdict is not None:
        words.append(say(VERDICTS[check.pair.verdict], locale))
    elif check.pair is not None and check.pair.method != "off":
        words.append(say("preflight.pair_unknown", locale))
    return " · ".join(words)


def parts(need: Need) -> dict[str, int]:
    """The parts of the memory, by the name of their sentence; the KV cache gets the rest."""
    sizes = {name: getattr(need, name) for name in FIXED_PARTS}
    return {**{name: size for name, size in sizes.items() if size}, "kv_cache": max(need.kv_available, 0)}


def memory_lines(check: SideCheck, locale: Locale = "en") -> list[str]:
    """The numbers, in sentences."""
    need, device = check.need, check.device
    if need is None or device is None:
        return []
    memory = say("preflight.of", locale, needed=need.total / GIB, available=need.budget / GIB, device=device.name)
    room = say(
        "preflight.room",
        locale,
        sequences=need.sequences,
        tokens=need.length,
        all=max(need.kv_available, 0) // need.kv_per_token,
    )
    return [memory, room]


def reasons(check: SideCheck, locale: Locale = "en") -> list[str]:
    """Every issue, and the settings that mend it."""
    return [_reason(issue, issue in check.memory, locale) for issue in check.issues]


def _reason(issue: FitIssue, memory: bool, locale: Locale) -> str:
    sentence = say_message(issue.problem, locale)
    if not issue.remedies:
        return sentence
    offered = _joined("preflight.or", (_remedy(remedy, locale) for remedy in issue.remedies), locale)
    with_changes = "preflight.fit_with" if memory else "preflight.works_with"
    return f"{sentence} {say(with_changes, locale, changes=offered)}"


def _remedy(remedy: Changes, locale: Locale) -> str:
    return _joined("preflight.and", (_change(change, locale) for change in remedy), locale)


def _change(change: Change, locale: Locale) -> str:
    value = say("preflight.default", locale) if change.value is None else change.value
    return f"{change.key.rpartition('.')[2]} = {str(value).lower() if isinstance(value, bool) else value}"


def _joined(message_id: str, texts: Iterable[str], locale: Locale) -> str:
    return reduce(lambda before, text: say(message_id, locale, one=before, other=text), texts)

"""What there is to choose, as HTML: the chosen preset in a line or two, and the list of all. Each offer is a link,
so that it can be opened elsewhere or sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from urllib.parse import urlencode

from playground import presets
from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings
from playground.domain.stats.headline import Headline
from playground.domain.stats.verdicts import Outcome
from playground.engine.devices import Machine
from playground.engine.kinds.table import KINDS
from playground.i18n import Locale, say, say_message
from playground.presets import Preset
from playground.report import recordings
from playground.report.answer.html import ratio_text
from playground.report.answer.text import result_text
from playground.ui.shared.message import notes_html

# By preset: the id of the last run or sweep of this machine, and what came out.
Results = Mapping[str, tuple[str, Headline]]
# What stands behind the ratio of speeds.
WORDS: dict[Outcome | None, str] = {
    "faster": "gallery.as_fast",
    "slower": "gallery.as_fast",
    "no clear difference": "hist.no_clear_difference",
    None: "gallery.unsure",
}


def chosen(preset: Preset, machine: Machine, locale: Locale, *, here: bool, vllm: bool = True) -> str:
    """The preset's title, what it shows, and a recording of it. `here`: its model is on this machine; without it,
    and without a GPU, watching comes first, as it does without vLLM."""
    title, shows = preset.title.in_locale(locale), preset.shows.in_locale(locale)
    parts = [f'<p class="shows">{escape(shows)}</p>'] if shows else []
    lacks = preset.gpu and not machine.gpus
    absent = _absent(preset, vllm)
    if lacks and vllm:
        needs = preset.needs.in_locale(locale)
        parts.append(f'<p class="warn">{escape(say("ui.needs_gpu_missing", locale))} {escape(needs)}</p>')
    parts += [f'<p class="warn">{escape(say_message(message, locale))}</p>' for message in absent]
    watched = _of_preset(preset) or (recordings.names()[:1] if lacks or not vllm else [])
    first = "first" if not vllm or (not machine.gpus and (lacks or not here)) else ""
    links = "".join(_recording(name, locale, first if index == 0 else "") for index, name in enumerate(watched))
    if first and watched:
        offer = say("gallery.first", locale, machine=_machine(watched[0]))
        links = f"<span>{escape(offer)}</span>{links}"
    choose = escape(say("gallery.choose", locale))
    notes = notes_html(preset.notes, locale, done=False) if preset.notes else ""
    return (
        f'<div class="chosen" data-locale="{locale}"><h2>{escape(title)}</h2>'
        f'<button type="button" class="choose" aria-haspopup="dialog">{choose}</button>'
        f'<div class="about">{"".join(parts)}</div><p class="links">{links}</p></div>{notes}'
    )


def listed(machine: Machine, results: Results, locale: Locale, *, vllm: bool = True) -> str:
    """All presets, then the recordings of others. What this machine can't run comes last."""
    offered = [_read(name) for name in presets.names()]
    able = [
        preset
        for preset in offered
        if preset is not None and (machine.gpus or not preset.gpu) and not _absent(preset, vllm)
    ]
    unable = [preset for preset in offered if preset is not None and preset not in able]
    named = {name for preset in able for name in _of_preset(preset)}
    others = [name for name in recordings.names() if name not in named]
    sections = [
        ("gallery.presets", [_offer(preset, results, locale) for preset in able]),
        ("gallery.recordings", [_other(name, locale) for name in others]),
        ("gallery.not_here", [_offer(preset, {}, locale, able=False) for preset in unable]),
    ]
    close = f'<button type="button" class="close" aria-label="{escape(say("gallery.close", locale))}">✕</button>'
    return close + "".join(
        _section(say(title, locale), items, folded=title == "gallery.not_here")
        for title, items in sections
        if items
    )


def _absent(preset: Preset, vllm: bool) -> list[Message]:
    """What is said of the engines that the preset needs and this host does not have."""
    runtimes = {side.engine.runtime for side in preset.sides if isinstance(side.engine, EngineSettings)}
    kinds = [kind for name, kind in KINDS.items() if name in runtimes and kind.find() is None]
    messages = [Message("kind.absent", {"engine": kind.title, "brings": kind.brings}) for kind in kinds]
    return messages if vllm or runtimes <= KINDS.keys() else [Message("runtime.watch_only"), *messages]


def _read(name: str) -> Preset | None:
    try:
        return presets.load(name)
    except PlaygroundError:
        # A file in the folder that is not one: whoever loads it by name is told why.
        return None


def _of_preset(preset: Preset) -> list[str]:
    """The recordings of the preset itself, else of the one that it names."""
    for source in (preset.name, preset.recording):
        if of_it := [name for name in recordings.names() if recordings.preset_of(name) == source]:
            return of_it
    return []


def _section(title: str, items: Sequence[str], *, folded: bool) -> str:
    head, rest = f"<h3>{escape(title)} ({len(items)})</h3>", f"<ul>{''.join(items)}</ul>"
    inner = f"<details><summary>{head}</summary>{rest}</details>" if folded else head + rest
    return f"<section>{inner}</section>"


def _offer(preset: Preset, results: Results, locale: Locale, *, able: bool = True) -> str:
    outcomes = []
    if (result := results.get(preset.name)) is not None:
        saved_id, headline = result
        outcomes.append(_figure(say("gallery.here", locale), headline, {"run": saved_id}, locale))
    outcomes += [_recording(name, locale) for name in _of_preset(preset)]
    mark = f' <span class="kind">{escape(say("race.mode_sweep", locale))}</span>' if preset.sweep else ""
    return _item(
        _link({"preset": preset.name}, escape(preset.title.in_locale(locale)), "title") + mark,
        [preset.shows.in_locale(locale), preset.needs.in_locale(locale)],
        outcomes,
        "" if able else "unable",
    )


def _other(name: str, locale: Locale) -> str:
    """A recording of what no preset here is."""
    record = recordings.load(name)
    title = " | ".join(side.label for side in recordings.sides_of(record))
    said = " ".join(say_message(message, locale) for message in recordings.origin(record))
    head = _link({"recording": name}, escape(title), "title")
    return _item(head, [said], [_recording(name, locale)])


def _item(head: str, lines: Iterable[str], outcomes: Sequence[str], kind: str = "") -> str:
    texts = "".join(f'<p title="{escape(line)}">{escape(line)}</p>' for line in lines if line)
    figures = f'<p class="links">{"".join(outcomes)}</p>' if outcomes else ""
    return f'<li class="{kind}"><div>{head}</div>{texts}{figures}</li>'


def _recording(name: str, locale: Locale, kind: str = "") -> str:
    """A race is watched; of the others the figure is said."""
    source = {"recording": name}
    if recordings.kind_of(name) == "race":
        return _link(source, escape(f"▶ {say('gallery.race', locale)}"), f"watch {kind}".strip())
    measured = say("gallery.measured_on", locale, machine=_machine(name))
    return _figure(measured, recordings.headline_of(recordings.load(name)), source, locale)


def _machine(name: str) -> str:
    return recordings.machine_of(recordings.load(name))


def _figure(where: str, headline: Headline, query: Mapping[str, str], locale: Locale) -> str:
    """The result as a small number and a word, with all of it as a hint."""
    text = escape(say("race.mode_sweep", locale))
    if headline.speed_up is not None:
        word = say(WORDS[headline.verdict], locale)
        text = f"<b>{ratio_text(headline.speed_up)}</b> {escape(word)}"
    return _link(query, f"{escape(where)}: {text}", "figure", result_text(headline, locale))


def _link(query: Mapping[str, str], text: str, kind: str, hint: str = "") -> str:
    title = f' title="{escape(hint)}"' if hint else ""
    return f'<a class="{kind}" href="?{escape(urlencode(query))}"{title}>{text}</a>'

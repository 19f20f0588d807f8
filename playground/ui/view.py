"""What a run looks like: the panes and the charts, live or from the history."""

from __future__ import annotations

import json
import time
from collections import deque
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradio as gr

from .. import charts, models
from ..compare import Comparison
from ..config import Config
from ..domain.metrics import request_figures
from ..domain.records import Run, SideRecord
from ..domain.settings import AttachedEndpoint
from ..domain.speculation import token_origins
from ..domain.workload import Sampling
from ..facts import facts, limitations, number
from ..text import Locale, say, say_problem
from ..tokens import TokenText, token_text

ASSETS = Path(__file__).with_name("assets")
PLOTLY_JS = Path(str(files("plotly") / "package_data" / "plotly.min.js"))
# Repaints whose tokens are sent again, in case the page skipped one.
OVERLAP = 10
FACTS_INTERVAL_S = 0.25
SILENCE_S = 5.0


@cache
def asset(name: str) -> str:
    """A script or style sheet of the page."""
    return (ASSETS / name).read_text(encoding="utf-8")


def panes() -> gr.HTML:
    """The component that shows a run's sides."""
    template = '<p class="headline" role="status"></p><p class="note"></p><details class="asked" hidden></details>'
    template += '<div class="panes"></div>'
    return gr.HTML(html_template=template, js_on_load=asset("view.js"), apply_default_css=False)


def chart_grid() -> gr.HTML:
    """The component that draws a run's charts."""
    boxes = "".join(f'<div data-chart="{name}"></div>' for name in charts.CHARTS)
    return gr.HTML(
        html_template=f'<p class="charts-message"></p><div class="chart-grid">{boxes}</div>',
        js_on_load=asset("charts.js"),
        apply_default_css=False,
        plotly=str(PLOTLY_JS),
        failed=say("ui.charts_failed"),
    )


def draw(run: Run, locale: Locale) -> str:
    """The charts' value."""
    return json.dumps({name: make(run.sides, locale) for name, make in charts.CHARTS.items()})


class Painter:
    """Turns a growing run into what one page has not seen yet. One painter a page."""

    def __init__(self, config: Config, run: Run, locale: Locale, comparison: Comparison | None = None) -> None:
        self._run = run
        self._locale = locale
        self._comparison = comparison
        self._sides = [_SidePainter(config, side, run.workload.sampling, locale) for side in run.sides]
        self._facts_at = 0.0

    def paint(self, *, whole: bool = False) -> str:
        """The panes' value: new tokens always, facts a few times a second, everything again if `whole`."""
        now = time.monotonic()
        with_facts = whole or now - self._facts_at >= FACTS_INTERVAL_S
        if with_facts:
            self._facts_at = now
        painted = {
            "run": self._run.id,
            "headline": self._headline(),
            "note": self._note(),
            "empty": say("pane.empty", self._locale),
            "command_label": say("ui.command", self._locale),
            "asked_label": say("ui.asked", self._locale),
            "asked": _asked(self._run, self._locale) if whole else None,
            "sides": [
                painter.paint(whole, self._stage(index, now) if with_facts else None)
                for index, painter in enumerate(self._sides)
            ],
        }
        return json.dumps(painted)

    def _headline(self) -> str:
        run, locale = self._run, self._locale
        if run.status == "running":
            phase = self._comparison.live.phase if self._comparison else "running"
            return say(f"race.{'queued' if phase == 'waiting' else phase}", locale)
        speeds = [
            (side.label, figures.decode_tokens_per_s)
            for side in run.sides
            for trace in side.requests
            if (figures := request_figures(trace))
        ]
        parts = [say(f"race.{run.status}", locale)]
        parts += [say("race.speed", locale, side=name, speed=number(speed)) for name, speed in speeds]
        return " · ".join(parts)

    def _note(self) -> str:
        run, locale = self._run, self._locale
        if run.problem is not None:
            return say_problem(run.problem, locale)
        if run.status == "running" or not any(trace.chunks for side in run.sides for trace in side.requests):
            return ""
        contended = any(side.contended for side in run.sides)
        fairness = say("race.contended" if contended else "race.nearly_fair", locale)
        return f"{fairness} {say('race.saved', locale, id=run.id)}"

    def _stage(self, index: int, now: float) -> tuple[str, float | None]:
        """What this side is doing, with elapsed time, and a fraction where one is known."""
        locale, comparison, side = self._locale, self._comparison, self._run.sides[index]
        if comparison is None or self._run.status != "running":
            return "", None
        progress = comparison.live.progress[index]
        if comparison.live.phase != "streaming":
            name = say(f"stage.{progress.stage}", locale)
            if progress.stage == "ready":
                return name, None
            elapsed = say("race.elapsed", locale, seconds=now - progress.since)
            return f"{name} · {elapsed}", progress.fraction
        trace = side.requests[0]
        if trace.ended or comparison.live.since is None:
            return "", None
        last = trace.chunks[-1].ms + trace.sent_ms if trace.chunks else trace.sent_ms
        silent = now - comparison.live.since - last / 1000
        return (say("race.silent", locale, seconds=silent) if silent > SILENCE_S else ""), None


class _SidePainter:
    def __init__(self, config: Config, side: SideRecord, asked: Sampling, locale: Locale) -> None:
        self._config = config
        self._side = side
        self._asked = asked
        self._locale = locale
        self._chunks_done = 0
        self._tokens_done = 0
        self._spans: list[tuple[str, int]] = []
        self._sent: deque[int] = deque([0], maxlen=OVERLAP)
        self._settled = False
        self._text: TokenText | None = None

    def paint(self, whole: bool, stage: tuple[str, float | None] | None) -> dict[str, Any]:
        reset = self._grow() or whole
        start = 0 if reset else self._sent[0]
        self._sent.append(len(self._spans))
        painted: dict[str, Any] = {
            "label": self._side.label,
            "method": _method(self._side, self._locale),
            "from": start,
            "spans": self._spans[start:],
            "reset": reset,
        }
        if stage is not None:
            painted |= self._details(*stage)
        return painted

    def _grow(self) -> bool:
        """Take in new chunks; True if earlier spans changed (the engine's step record settled their colours)."""
        if not self._side.requests:
            return False
        trace = self._side.requests[0]
        origins, settled = token_origins(trace, bool(self._side.settings.speculates))
        reset = settled and not self._settled
        if reset:
            self._settled = True
            self._chunks_done = self._tokens_done = 0
            self._spans = []
        for chunk in trace.chunks[self._chunks_done :]:
            count = chunk.tokens or 0
            flags = origins[self._tokens_done : self._tokens_done + count] if origins else []
            self._spans += self._split(chunk.text, chunk.token_ids, flags)
            self._chunks_done += 1
            self._tokens_done += count
        return reset

    def _split(self, text: str, ids: tuple[int, ...] | None, flags: list[bool]) -> list[tuple[str, int]]:
        if not any(flags):
            return [(text, 0)]
        if all(flags):
            return [(text, 1)]
        if self._text is None:
            self._text = token_text(models.local_folder(self._config, self._side.settings.target))
        pieces = self._text.split(text, ids)
        if pieces is None:
            return [(text, 1)]
        return [(piece, int(flag)) for piece, flag in zip(pieces, flags, strict=True)]

    def _details(self, stage: str, fraction: float | None) -> dict[str, Any]:
        side = self._side
        place = side.placement
        if place and side.contended:
            place += f" · {say('figure.contended', self._locale)}"
        place = " ".join([place, *(say_problem(known, self._locale) for known in limitations(side, self._asked))])
        return {
            "place": place,
            "stage": stage,
            "fraction": fraction,
            "command": side.command,
            "facts": facts(side, self._locale),
            "legend": self._legend(),
            "problem": self._problem(),
        }

    def _legend(self) -> list[tuple[str, str]]:
        """Never on a side without speculation: nothing is coloured there."""
        if not self._side.settings.speculates or not self._spans:
            return []
        how = "settled" if self._settled else "estimated"
        return [(name, say(f"legend.{name}", self._locale)) for name in ("target", "draft", how)]

    def _problem(self) -> dict[str, Any] | None:
        side = self._side
        problem = side.problem or next((trace.problem for trace in side.requests if trace.problem), None)
        if problem is None:
            return None
        return {"message": say_problem(problem, self._locale), "log": side.log_tail}


def _method(side: SideRecord, locale: Locale) -> str:
    """The speculation method, with how many tokens it drafts."""
    if isinstance(side.settings, AttachedEndpoint):
        return say("side.attached", locale)
    speculation = side.settings.speculation.model_dump()
    k = speculation.get("num_speculative_tokens")
    return side.settings.speculation.method + (f" · k = {k}" if k else "")


def _asked(run: Run, locale: Locale) -> list[tuple[str, str]]:
    """What was asked and of what, for somebody who opens the run later."""
    sampling = {name: value for name, value in run.workload.sampling if value not in (None, ())}
    asked: list[tuple[str, str]] = [(turn.role, turn.content) for turn in run.workload.conversation]
    asked.append((say("ui.sampling_used", locale), ", ".join(f"{k} = {v}" for k, v in sampling.items())))
    for side in run.sides:
        asked.append((side.label, ", ".join(_served(side))))
    if run.preset:
        asked.append((say("ui.preset", locale), run.preset))
    return asked


def _served(side: SideRecord) -> list[str]:
    """What answered, in a few words each."""
    settings = side.settings
    if isinstance(settings, AttachedEndpoint):
        return [settings.model, settings.base_url, settings.api]
    knobs = [f"{name} = {value}" for name, value in settings.knobs.overrides().items()]
    parts = [settings.target, *([f"draft {settings.draft}"] if settings.draft else []), *knobs]
    return [*parts, f"vLLM {side.runtime_version}"] if side.runtime_version else parts

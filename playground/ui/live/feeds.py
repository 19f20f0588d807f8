"""What is painted of a run and of a sweep under way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from playground.config import Config
from playground.domain.record.run import Mode, Run
from playground.domain.sweep.record import Sweep
from playground.i18n import Locale
from playground.runs.comparison import Comparison
from playground.runs.host import Host
from playground.runs.live import EXAMINING
from playground.runs.sweep import SweepRun
from playground.ui.shared import view
from playground.ui.sweep.painter import SweepPainter, progress

from .channel import Feed, Parts

# Seconds between repaints. While something is measured, the page must not take processor time from the engine.
REPAINT_S: dict[Mode, float] = {"race": 0.04, "measured": 0.5}
CHARTS_S: dict[Mode, float] = {"race": 0.5, "measured": 2.0}
SWEEP_S = 1.0


class Panes:
    """The text of a run."""

    def __init__(self, config: Config, comparison: Comparison, locale: Locale) -> None:
        self._comparison = comparison
        self._painter = view.painter(config, comparison.run, locale, comparison, comparison.earlier)
        self.interval_s = REPAINT_S[comparison.run.mode]

    @property
    def finished(self) -> bool:
        return self._comparison.finished

    async def changes(self) -> Parts:
        if self._comparison.run.mode == "race":
            return {"panes": self._painter.paint()}
        return {"panes": await asyncio.to_thread(self._painter.paint)}

    async def whole(self) -> Parts:
        return {"panes": await asyncio.to_thread(self._painter.paint, whole=True)}


class Charts:
    """The charts of a run."""

    def __init__(self, comparison: Comparison, locale: Locale) -> None:
        self._comparison = comparison
        self._drawer = view.Drawer(comparison.run, locale)
        # Until there is something to draw, those of the run before are taken away.
        self._drawn: Parts = {"charts": "{}"}
        self.interval_s = CHARTS_S[comparison.run.mode]

    @property
    def finished(self) -> bool:
        return self._comparison.finished

    async def changes(self) -> Parts:
        if self._comparison.live.phase not in ("streaming", "measuring", *EXAMINING):
            return {}
        drawn = {"charts": await asyncio.to_thread(self._drawer.draw)}
        changed, self._drawn = drawn != self._drawn, drawn
        return drawn if changed else {}

    async def whole(self) -> Parts:
        if self.finished:
            self._drawn = {"charts": await asyncio.to_thread(self._drawer.draw)}
        return self._drawn


class Points:
    """A sweep: what it does now, its conclusions, its points, its charts."""

    interval_s = SWEEP_S

    def __init__(self, config: Config, sweep_run: SweepRun, locale: Locale) -> None:
        self._sweep_run = sweep_run
        self._locale = locale
        self._painter = SweepPainter(config, sweep_run.sweep, locale)
        self._painted: Parts = {}

    @property
    def finished(self) -> bool:
        return self._sweep_run.finished

    async def changes(self) -> Parts:
        painted = await asyncio.to_thread(self._painter.paint)
        changed = {"progress": progress(self._sweep_run, self._locale), **_named(painted)}
        changed = {part: value for part, value in changed.items() if self._painted.get(part) != value}
        self._painted = {**self._painted, **changed}
        return changed

    async def whole(self) -> Parts:
        if self.finished:
            await self.changes()
        return self._painted


def of_run(config: Config, comparison: Comparison, locale: Locale) -> Sequence[Feed]:
    return Panes(config, comparison, locale), Charts(comparison, locale)


def of_sweep(config: Config, sweep_run: SweepRun, locale: Locale) -> Sequence[Feed]:
    return (Points(config, sweep_run, locale),)


def stored(host: Host, record: Run | Sweep, locale: Locale, *, listed: bool = True) -> Parts:
    """All parts of a run or sweep that has ended. `listed`: it is in the history. Blocking."""
    if isinstance(record, Sweep):
        return {"progress": "", **_named(SweepPainter(host.config, record, locale, listed=listed).paint())}
    panes, drawn = view.rendered(host, record, locale, listed=listed)
    return {"panes": panes, "charts": drawn}


def _named(painted: tuple[str, str, str] | None) -> Parts:
    return {} if painted is None else dict(zip(("outcome", "points", "charts"), painted, strict=True))

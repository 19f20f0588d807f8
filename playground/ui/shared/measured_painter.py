"""A measured run as its followers see it.

Figures are computed only when a round has ended: the page shares the machine with what is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from playground.config import Config
from playground.domain.record.run import Run, SideRecord
from playground.domain.record.traces import RequestTrace
from playground.domain.spec.measurement import MIN_ROUNDS, Measurement
from playground.domain.stats.headline import Headline
from playground.domain.stats.rounds import round_seconds, whole_rounds
from playground.i18n import Locale, say, say_message
from playground.report.answer.text import result_text
from playground.report.conclusions import Conclusion, Kind, conclusions
from playground.report.figures import statistics_heads
from playground.report.tables import errors, tables
from playground.runs.comparison import Comparison
from playground.runs.live import EXAMINING

from .painter import Painter, Stage

# Answers shown of a side's latest trial, and characters of each.
ANSWERS = 20
LONGEST = 1500
# What stands beside the verdict, and what is folded away with the figures.
NOTES: tuple[Kind, ...] = ("note", "failures", "ending", "answers", "claim")
CAVEATS: tuple[Kind, ...] = ("accuracy",)


class MeasuredPainter(Painter):
    def __init__(
        self,
        config: Config,
        run: Run,
        locale: Locale,
        comparison: Comparison | None = None,
        earlier: Run | None = None,
    ) -> None:
        super().__init__(config, run, locale, comparison, earlier)
        # Those that the figures are of, and those that the last painted change was of.
        self._rounds = self._painted_rounds = 0
        self._conclusions: list[Conclusion] = []
        self._answer = ""
        self._table: dict[str, Any] | None = None

    def _paint(self, now: float, whole: bool) -> dict[str, Any]:
        run = self._run
        done = whole_rounds(run)
        changed = whole or done != self._painted_rounds
        if not whole:
            self._painted_rounds = done
        if whole or done != self._rounds:
            self._rounds = done
            self._conclusions = conclusions(run) if done else []
            self._answer = self._verdict() if done else ""
            has_figures = any(side.reported or any(trial.sent for trial in side.trials) for side in run.sides)
            self._table = self._tables() if has_figures else None
        return {
            "headline": self._headline(),
            "verdict": self._answer,
            "caveats": self._sentences(CAVEATS),
            "note": self._note(now),
            "sides": [self._pane(index, now, changed) for index in range(len(run.sides))],
            "table": self._table,
        }

    def _headline(self) -> str:
        status, verdicts = self._run.status, " ".join(self._sentences(("headline",)))
        if status == "running":
            return verdicts or self._phase()
        if status == "done" and verdicts:
            return verdicts
        if self._run.mode == "imported":
            return f"{self._run.sides[0].placement}: {result_text(Headline.of(self._run), self._locale)}"
        return " · ".join(part for part in (say(f"race.{status}", self._locale), verdicts) if part)

    def _sentences(self, kinds: Sequence[Kind]) -> list[str]:
        return [say_message(item.sentence, self._locale) for item in self._conclusions if item.kind in kinds]

    def _note(self, now: float) -> str:
        run = self._run
        if run.status == "running":
            return " · ".join(part for part in (self._progress(now), *self._sentences(("failures",))) if part)
        if run.problem is not None:
            return self._failure(run.problem)
        return " ".join(self._sentences(NOTES))

    def _progress(self, now: float) -> str:
        comparison, plan, locale = self._comparison, self._run.measurement, self._locale
        if comparison is None or plan is None or comparison.live.since is None:
            return ""
        if comparison.live.phase in EXAMINING:
            done, total = comparison.live.checked
            return say("measured.checked", locale, phase=self._phase(), done=done, total=total) if total else ""
        elapsed_s = now - comparison.live.since
        progress = say(
            "measured.progress",
            locale,
            round=min(self._rounds + 1, plan.max_rounds),
            most=plan.max_rounds,
            elapsed=_clock(elapsed_s),
            budget=_clock(plan.budget_s),
        )
        return f"{progress} · {left}" if (left := self._left(plan, elapsed_s)) else progress

    def _left(self, plan: Measurement, elapsed_s: float) -> str:
        """How long it will still take, by the rounds so far; empty in the first."""
        each_s = round_seconds(self._run) if self._rounds else None
        if not each_s:
            return ""
        rounds = max(1, min(plan.max_rounds, int(plan.budget_s / each_s)))
        if rounds < MIN_ROUNDS:
            return say("measured.left_few", self._locale, rounds=rounds, least=MIN_ROUNDS)
        which = ("left_least", MIN_ROUNDS) if self._rounds < MIN_ROUNDS else ("left_most", rounds)
        left_s = max(0.0, which[1] * each_s - elapsed_s)
        return say(f"measured.{which[0]}", self._locale, rounds=MIN_ROUNDS, time=_clock(left_s))

    def _pane(self, index: int, now: float, changed: bool) -> dict[str, Any]:
        side = self._run.sides[index]
        stage, fraction = self._stage(index, now)
        comparison = self._comparison
        painted = {
            **self._side(index),
            "place": self._place(side),
            "stage": stage,
            "fraction": fraction,
            "serving": comparison is not None and not comparison.finished and comparison.live.serving == index,
            "command": side.command,
        }
        if changed:
            lines = errors(side.requests, self._locale)
            painted |= {"problem": self._problem(side, lines), "answers": self._answers(side)}
        return painted

    def _stage(self, index: int, now: float) -> Stage:
        comparison, plan, side = self._comparison, self._run.measurement, self._run.sides[index]
        if comparison is None or plan is None or self._run.status != "running":
            return self._unserved(side), None
        live = comparison.live
        if live.phase != "measuring" or live.since is None:
            return self._starting(index, now)
        if live.serving != index or not side.trials:
            return say("measured.waits", self._locale), 0.0
        trial = side.trials[-1]
        done = len(trial.requests)
        if plan.requests is not None:
            return say("measured.turn", self._locale, done=done, of=plan.requests), done / plan.requests
        lasted = now - live.since - trial.started_ms / 1000
        duration = plan.profile.duration_s or lasted
        stage = say("measured.turn_timed", self._locale, done=done, elapsed=_clock(lasted), of=_clock(duration))
        return stage, min(1.0, lasted / duration)

    def _tables(self) -> dict[str, Any]:
        return {
            "title": say("measured.all_figures", self._locale),
            "unit": say("measured.milliseconds", self._locale),
            "single_name": say("measured.figure", self._locale),
            "columns": statistics_heads(self._locale),
            **asdict(tables(self._run, self._locale)),
        }

    def _answers(self, side: SideRecord) -> dict[str, Any] | None:
        """The answers of the side's latest trial, which show whether it answers the prompts."""
        latest = next((trial for trial in reversed(side.trials) if trial.complete), None)
        if latest is None or not latest.requests:
            return None
        if side.settings.synthetic:
            return {"title": say("side.synthetic_text", self._locale), "pairs": []}
        traces = latest.requests[:ANSWERS]
        title = say(
            "measured.answers",
            self._locale,
            round=latest.round + 1,
            shown=len(traces),
            count=len(latest.requests),
        )
        return {"title": title, "pairs": [self._pair(trace) for trace in traces]}

    def _pair(self, trace: RequestTrace) -> tuple[str, str]:
        answer = trace.output_text or (say_message(trace.problem, self._locale) if trace.problem else "-")
        return _cut(trace.conversation[-1].content), _cut(answer)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _clock(seconds: float) -> str:
    """Minutes and seconds, as 4:07; hours count as minutes."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"

"""What the panes of a race and of a measured run share. `assets/view.js` reads what a painter writes."""

from __future__ import annotations

import json
import shlex
import time
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import BaseModel

from playground.config import Config
from playground.domain.message import Message
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.sweep.budget import START_S
from playground.engine import devices
from playground.engine.failures.remedies import change_label, remedy_of
from playground.i18n import Locale, say, say_message
from playground.report.answer import unlike, unset_path
from playground.report.answer.html import answer_html
from playground.report.charts.chart import COLOURS
from playground.report.engine_path import path_html
from playground.report.findings import findings
from playground.report.side_by_side import SideBySide
from playground.report.side_by_side import text as texts
from playground.report.side_summary import limitations, stages_text, start_text
from playground.runs.comparison import Comparison

from .deploy import deploy_html

Stage = tuple[str, float | None]


class Painter:
    """Turns a growing run into updates for everybody who follows it in one language. `earlier`: the run that it
    repeats."""

    def __init__(
        self,
        config: Config,
        run: Run,
        locale: Locale,
        comparison: Comparison | None = None,
        earlier: Run | None = None,
    ) -> None:
        self._config = config
        self._run = run
        self._locale = locale
        self._comparison = comparison
        self._earlier = earlier
        # Whether it is in this host's history.
        self.listed = True
        self._findings: dict[str, Any] | None = None

    def paint(self, *, whole: bool = False, at_s: float | None = None) -> str:
        """The panes' value: what changed since the last change that was painted, or everything if `whole`. What is
        painted whole is for a newcomer: the others still get the change. `at_s`: the time to paint for, by any
        clock; now, unless it is said."""
        now = time.monotonic() if at_s is None else at_s
        labels = {"empty": "pane.empty", "command_label": "ui.command", "asked_label": "ui.asked"}
        painted = {
            "run": self._run.id,
            "mode": self._run.mode,
            **{name: say(message_id, self._locale) for name, message_id in labels.items()},
            "asked": self._setup() if whole else None,
            "deploy": [self._folds(index) for index in range(len(self._run.sides))] if whole else None,
            "findings": self._findings_section(),
            **self._paint(now, whole),
        }
        if self._run.status != "running":
            beside = [say_message(what, self._locale) for what in unlike(self._run)]
            painted["note"] = " ".join([*beside, painted["note"]]).strip()
        if self._run.status != "running" and self._run.problem is None and not self._drawn():
            painted["note"] = f"{painted['note']} {say('chart.none', self._locale)}".strip()
        unsaved = self._comparison is not None and self._comparison.unsaved is not None
        if unsaved:
            painted["note"] = f"{painted['note']} {say('run.kept', self._locale)}".strip()
        elif self.listed and self._run.status != "running":
            painted["saved"] = self._saved()
        return json.dumps(painted)

    def _saved(self) -> dict[str, str]:
        """Where the run is kept, and what the links to it say."""
        names = {"link": "kept.link", "copied": "kept.copied", "open": "race.open"}
        texts = {name: say(message_id, self._locale) for name, message_id in names.items()}
        return {"text": say("race.saved", self._locale, id=self._run.id), **texts}

    def _drawn(self) -> bool:
        """Whether there is anything for a chart to show."""
        return self._run.mode == "imported" or any(
            side.samples
            or any(trial.summary or any(trace.chunks for trace in trial.requests) for trial in side.trials)
            for side in self._run.sides
        )

    def _folds(self, index: int) -> str:
        """Below the side: how its engine works, and what starts it elsewhere."""
        side, locale = self._run.sides[index], self._locale
        unset = {difference.name for difference in unset_path(self._run, index)} if index else set[str]()
        path = path_html(side.path, unset, locale)
        return path + deploy_html(self._config, side, locale, say("deploy.deploy", locale))

    def _paint(self, now: float, whole: bool) -> dict[str, Any]:
        """`headline`, `note`, `sides` and whatever else this mode shows."""
        raise NotImplementedError

    def _findings_section(self) -> dict[str, Any] | None:
        """The findings; None while the run is under way."""
        if self._findings is None and self._run.status != "running":
            colours = {side.label: colour for side, colour in zip(self._run.sides, COLOURS, strict=False)}
            items = [
                {
                    "colour": colours[finding.side],
                    "sentences": [say_message(sentence, self._locale) for sentence in finding.sentences],
                    "change": finding.change and f"{finding.change.key} = {finding.change.value}",
                }
                for finding in findings(self._run)
            ]
            self._findings = {"title": say("finding.count", self._locale, count=len(items)), "items": items}
        return self._findings

    def _verdict(self) -> str:
        """The answer as HTML: a number, its interval, how sure it is."""
        return answer_html(self._run, self._locale) + self._since()

    def _since(self) -> str:
        """Whether anything has changed since the run that this one repeats, once it has ended."""
        if self._earlier is None or self._run.status == "running":
            return ""
        beside, locale = SideBySide.of([self._earlier, self._run]), self._locale
        sentence = escape(texts.conclusion(beside, locale))
        link = f"?compare={quote(self._earlier.id)},{quote(self._run.id)}"
        more = escape(say("beside.open", locale))
        return f'<p class="since">{sentence} <a href="{link}">{more}</a></p>'

    def _phase(self) -> str:
        live = self._comparison.live if self._comparison else None
        phase = live.phase if live else "running"
        name = say(f"race.{'queued' if phase == 'waiting' else phase}", self._locale)
        if live is None or phase != "starting" or live.starting_since is None:
            return name
        elapsed = say("race.elapsed", self._locale, seconds=time.monotonic() - live.starting_since)
        source = "usual" if live.usual_start_s is not None else "guessed"
        seconds = live.usual_start_s or START_S["cuda" if devices.machine().gpus else "cpu"]
        usual = say(f"race.{source}_start", self._locale, seconds=seconds)
        return f"{name} · {elapsed} · {usual}"

    def _starting(self, index: int, now: float) -> Stage:
        """The stage of this side's start, with elapsed time, and a fraction where one is known."""
        if self._comparison is None:
            return "", None
        progress = self._comparison.live.progress[index]
        name = say(f"stage.{progress.stage}", self._locale)
        if progress.stage == "ready":
            return name, None
        parts = [name, say("race.elapsed", self._locale, seconds=now - progress.since)]
        if passed := stages_text(progress.passed, self._locale):
            parts.append(say("race.passed", self._locale, stages=passed))
        return " · ".join(parts), progress.fraction

    def _side(self, index: int) -> dict[str, Any]:
        """The side's label, its method and its colour."""
        side = self._run.sides[index]
        return {"label": side.label, "method": _method(side, self._locale), "colour": COLOURS[index]}

    def _place(self, side: SideRecord, *marks: str) -> str:
        """Where the side runs, with these marks; for an attached endpoint also what can't be known."""
        where = side.placement
        if where.startswith("CPU "):
            where = say("side.cores", self._locale, cores=where.removeprefix("CPU "))
        place = " · ".join(part for part in (where, *marks) if part)
        known = [
            say_message(limitation, self._locale) for limitation in limitations(side, self._run.workload.sampling)
        ]
        return " · ".join([place, *known])

    def _failure(self, problem: Message) -> str:
        """Why the run ended. What one side's pane says is not said twice."""
        failed = [side.label for side in self._run.sides if side.problem is not None]
        if not failed:
            return say_message(problem, self._locale)
        return say("run.sides_failed", self._locale, sides=", ".join(failed))

    def _unserved(self, side: SideRecord) -> str:
        """That a side was not measured, since another failed; empty where it was, or has failed itself."""
        failed = [other.label for other in self._run.sides if other.problem is not None]
        if self._run.status == "running" or not failed or side.problem is not None or side.requests:
            return ""
        return say("run.unserved", self._locale, sides=", ".join(failed))

    def _problem(self, side: SideRecord, lines: list[str]) -> dict[str, Any] | None:
        problem = [say_message(side.problem, self._locale)] if side.problem else []
        if not problem and not lines:
            return None
        remedy = remedy_of(side, self._run.machine)
        changes = [say_message(change_label(change), self._locale) for change in remedy.changes] if remedy else []
        return {
            "lines": [*problem, *([say_message(remedy.advice, self._locale)] if remedy else []), *lines],
            "changes": changes,
            "elsewhere": say("change.elsewhere", self._locale, changes=" · ".join(changes)),
            "log": side.log_tail,
            "log_label": say("pane.log", self._locale),
        }

    def _setup(self) -> list[tuple[str, str]]:
        """The prompts and the settings of the run, for a reader who opens it later."""
        run, locale = self._run, self._locale
        rows: list[tuple[str, str]] = []
        if run.mode == "imported":
            assert run.measurement is not None
            load = (say("measure.load", locale), _named(run.measurement.profile, locale))
            return [load, *((side.label, side.settings.target) for side in run.sides)]
        if run.measurement is None or run.measurement.prompts is None:
            rows += [(turn.role, turn.content) for turn in run.workload.conversation]
        elif isinstance(run.measurement.prompts, str):
            # Only the name of an uploaded file, without its folder.
            rows.append((say("measure.prompts", locale), Path(run.measurement.prompts).name))
        else:
            rows.append((say("measure.prompts_synthetic", locale), _named(run.measurement.prompts, locale)))
        if run.measurement is not None:
            rows.append((say("measure.load", locale), _named(run.measurement.profile, locale)))
            rows.append((say("measure.good", locale), say(f"verdict.by_{run.workload.objective}", locale)))
            if run.measurement.limits.is_set:
                rows[-1] = (rows[-1][0], f"{rows[-1][1]}, {_listed(run.measurement.limits)}")
        rows.append((say("ui.sampling_used", locale), _listed(run.workload.sampling)))
        rows += [(side.label, _settings(side, locale)) for side in run.sides]
        starts = [(side.label, start_text(side, locale)) for side in run.sides]
        rows += [(say("side.start_of", locale, label=label), text) for label, text in starts if text]
        if run.preset:
            rows.append((say("ui.preset", locale), run.preset))
        return rows


def _listed(model: BaseModel) -> str:
    return ", ".join(f"{name} = {value}" for name, value in model if value not in (None, ()))


def _named(model: BaseModel, locale: Locale) -> str:
    """The values under the names that the form gives their fields."""
    parts = []
    for name, value in model:
        if value not in (None, ()):
            text = say(f"measure.{name}_{value}", locale) if name in ("kind", "arrivals") else str(value)
            parts.append(f"{say(f'measure.{name}', locale)}: {text}")
    return ", ".join(parts)


def _settings(side: SideRecord, locale: Locale) -> str:
    """The side's model and settings in a few words."""
    settings = side.settings
    if isinstance(settings, AttachedEndpoint):
        return ", ".join([settings.model, settings.base_url, settings.api])
    knobs = [f"{name} = {value}" for name, value in settings.knobs.overrides().items()]
    if settings.speculates is None:
        speculation = shlex.join(settings.extra_flags)
    else:
        speculation = _listed(settings.speculation) if settings.speculates else say("side.off", locale)
    parts = [settings.target, speculation, *knobs]
    return ", ".join([*parts, *([side.engine] if side.engine else [])])


def _method(side: SideRecord, locale: Locale) -> str:
    """The speculation method, with how many tokens it drafts."""
    if side.reported is not None:
        return say("race.mode_imported", locale)
    if isinstance(side.settings, AttachedEndpoint):
        return say("side.attached", locale)
    speculation = side.settings.speculation.model_dump()
    k = speculation.get("num_speculative_tokens")
    method = side.settings.speculation.method
    return say("side.off", locale) if method == "off" else method + (f" · k = {k}" if k else "")

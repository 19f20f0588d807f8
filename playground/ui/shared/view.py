"""How a run is displayed: the panes and the charts, live or from the history."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import gradio as gr

from playground.config import Config
from playground.domain.record.run import Run
from playground.i18n import Locale, say
from playground.report import charts
from playground.runs.comparison import Comparison
from playground.runs.host import Host

from .charts_value import charts_value
from .form_origin import stored
from .measured_painter import MeasuredPainter
from .painter import Painter
from .race_painter import RacePainter

ASSETS = Path(__file__).parents[1] / "assets"
PLOTLY_JS = Path(str(files("plotly") / "package_data" / "plotly.min.js"))
# The answer first, then what the sides wrote and the figures that matter; the rest is folded.
PANES = """
<section class="result">
<p class="headline"></p><p class="spoken" role="status"></p>
<div class="verdict"></div><p class="note"></p><p class="saved" hidden></p></section>
<div class="panes"></div><div class="figures key-figures" hidden></div>
<div class="folds"><details class="findings" hidden></details>
<details class="all-figures" hidden>
<summary></summary><ul class="caveats"></ul><div class="figures"></div></details>
<details class="asked" hidden></details></div>
<div class="definition" popover tabindex="-1" autofocus></div>
"""
CHARTS = """
<div class="lead-chart"></div><details class="all-charts" hidden><summary></summary>
<p class="charts-message"></p><div class="chart-grid"></div><p class="left-out"></p></details>
"""


@cache
def asset(name: str) -> str:
    """A script or style sheet of the page."""
    return (ASSETS / name).read_text(encoding="utf-8")


def panes(elem_id: str | None = None, *, applies: bool = False, live: str | None = None) -> gr.HTML:
    """The component that shows a run's sides. `applies`: a click on a remedy's change is an event. `live`: the
    part of a followed run that it shows (see live/follower.py)."""
    # One script: shared functions, then each mode's, then the code that inserts a value.
    script = "\n".join(
        asset(f"{name}.js") for name in ("parts", "address", "race", "measured", "deploy", "view", "live")
    )
    return gr.HTML(
        html_template=PANES,
        js_on_load=script,
        apply_default_css=False,
        elem_id=elem_id,
        applies=applies,
        live=live,
    )


def live_text(live: str | None, *scripts: str, elem_id: str | None = None) -> gr.HTML:
    """A component whose value is HTML, which also comes from what is followed."""
    script = "\n".join(asset(f"{name}.js") for name in (*scripts, "text", "live"))
    return gr.HTML(js_on_load=script, apply_default_css=False, elem_id=elem_id, live=live)


def run_list(elem_id: str, *, live: str | None = None) -> gr.HTML:
    """A table of runs; a click on a row sends the id of its run."""
    return gr.HTML(
        html_template='<div class="runs"><table></table></div>',
        js_on_load=f"{asset('runs.js')}\n{asset('live.js')}",
        apply_default_css=False,
        elem_id=elem_id,
        live=live,
    )


def chart_grid(*, live: str | None = None) -> gr.HTML:
    """The component that draws charts: the first at once, all of them when its fold is opened."""
    return gr.HTML(
        html_template=CHARTS,
        js_on_load=f"{asset('charts.js')}\n{asset('live.js')}",
        apply_default_css=False,
        plotly=str(PLOTLY_JS),
        failed=say("ui.charts_failed"),
        live=live,
    )


def emptied_by(texts: Sequence[gr.HTML], fields: Iterable[Any], buttons: Iterable[gr.Button] = ()) -> Any:
    """Empty these texts once a field's value has changed, by a visitor or an event, or one of the buttons was
    clicked, since they were about the earlier values. Returns the event, for what else is to follow: a second list
    of as many fields costs each visitor tens of milliseconds when the page opens."""
    events = [*(field.change for field in fields), *(button.click for button in buttons)]
    return gr.on(events, None, None, texts, js=f"() => {[''] * len(texts)}", show_progress="hidden")


def painter(
    config: Config, run: Run, locale: Locale, comparison: Comparison | None = None, earlier: Run | None = None
) -> Painter:
    """The painter of a run: under way if there is a comparison, else from the history. `earlier`: the run that it
    repeats."""
    kind = RacePainter if run.mode == "race" else MeasuredPainter
    return kind(config, run, locale, comparison, earlier)


def rendered(host: Host, run: Run, locale: Locale, *, listed: bool = True) -> tuple[str, str]:
    """The values of the panes and of the charts, for a run that has ended. `listed`: it is in the history.
    Blocking."""
    earlier = stored(host, run.earlier) if run.earlier else None
    painting = painter(host.config, run, locale, None, earlier if isinstance(earlier, Run) else None)
    painting.listed = listed
    return painting.paint(whole=True), Drawer(run, locale).draw()


class Drawer:
    """Draws a growing run."""

    def __init__(self, run: Run, locale: Locale) -> None:
        self._run = run
        self._locale = locale
        self._rounds = -1
        self._outcomes: dict[str, charts.Chart] = {}

    def draw(self) -> str:
        """The charts' value."""
        run, locale = self._run, self._locale
        if run.mode != "measured":
            drawn = charts.charts_of(run, locale)
            return charts_value(drawn, locale, lead="speed", ended=run.status != "running")
        done = min(sum(trial.complete for trial in side.trials) for side in run.sides)
        if done != self._rounds:
            self._rounds = done
            self._outcomes = charts.outcomes(run, locale)
        drawn = {**self._outcomes, **charts.over_time(run, locale)}
        return charts_value(drawn, locale, ended=run.status != "running")

"""The charts of a measured run: results by round, and what the engines reported meanwhile."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import ceil, exp, log, sqrt
from statistics import quantiles

from playground.domain.record.counters import SLOWED, Counters, Sample
from playground.domain.record.metrics import acceptance_of, request_figures
from playground.domain.record.run import Run, SideRecord, Trial
from playground.domain.spec.measurement import MIN_ROUNDS
from playground.domain.stats.intervals import half_width
from playground.domain.stats.rounds import Round, rounds_of
from playground.domain.stats.verdicts import compare
from playground.i18n import Locale, say

from .chart import COLOURS, Chart, as_share, empty, line, noted, per_position, translucent, with_equality_line

# Samples that a chart draws of each side: enough for its width in pixels.
SAMPLES = 500
BAND_OPACITY = 0.2
FIGURES = ("ttft", "tpot", "e2el")

# The value that one sample shows, from the sample before it in its trial and the counters before that trial.
Reading = Callable[[Sample, Sample | None, Counters | None], float | None]


def outcomes(run: Run, locale: Locale) -> dict[str, Chart]:
    """The charts that change when a round has ended. They are computed from every chunk, so not more often than
    that."""
    rounds = rounds_of(run)
    done = [[trial for trial in side.trials if trial.complete] for side in run.sides]
    accepted = [(side, acceptance_of(trials)) for side, trials in zip(run.sides, done, strict=True)]
    return {
        "speed_up": speed_up(run, rounds, locale),
        "by_round": by_round(run, rounds, locale),
        **distributions(run, done, locale),
        "per_position": per_position(accepted, locale),
    }


def over_time(run: Run, locale: Locale) -> dict[str, Chart]:
    """The charts of the engines' counters alone: cheap enough to draw during the measurement."""
    throughput = _sampled(run, "chart.sampled_speed", "chart.tokens_per_s", {"": _generated}, locale)
    cache = _sampled(run, "chart.kv_cache", "chart.share", {"": _gauge("kv_cache_usage")}, locale)
    hits = _sampled(run, "chart.prefix_hits", "chart.share", {"": _prefix_hits}, locale, "chart.no_lookups")
    on_gpus = any(sample.counters.gpu_utilization is not None for side in run.sides for sample in side.samples)
    queues = {"running": _gauge("running"), "waiting_now": _gauge("waiting")}
    return {
        "sampled_speed": throughput,
        "queues": _sampled(run, "chart.queues", "chart.requests", queues, locale),
        "kv_cache": as_share(cache),
        "prefix_hits": as_share(hits),
        "preemptions": _sampled(run, "chart.preemptions", "chart.count", {"": _preempted}, locale),
        **(_gpus(run, locale) if on_gpus else {}),
    }


def _gpus(run: Run, locale: Locale) -> dict[str, Chart]:
    """Figures of whole cards: they include idle engines' memory, and other programs on the same card."""
    busy = _sampled(run, "chart.gpu_utilization", "chart.share", {"": _gauge("gpu_utilization")}, locale)
    memory = _sampled(run, "chart.gpu_memory", "chart.gib", {"": _gpu_gib}, locale)
    power = _sampled(run, "chart.gpu_power", "chart.watts", {"": _gauge("gpu_power_w")}, locale)
    clock = _sampled(run, "chart.gpu_clock", "chart.mhz", {"": _gauge("gpu_clock_mhz")}, locale)
    charts = {"gpu_utilization": as_share(busy), "gpu_memory": memory, "gpu_power": power, "gpu_clock": clock}
    # A temperature explains a clock that heat holds down, and nothing else here.
    if any((sample.counters.gpu_throttle or 0) & SLOWED for side in run.sides for sample in side.samples):
        temperature = {"": _gauge("gpu_temperature_c")}
        charts["gpu_temperature"] = _sampled(run, "chart.gpu_temperature", "chart.celsius", temperature, locale)
    return charts


def _gpu_gib(sample: Sample, earlier: Sample | None, before: Counters | None) -> float | None:
    used = sample.counters.gpu_memory_bytes
    return None if used is None else used / 2**30


def speed_up(run: Run, rounds: Sequence[Round], locale: Locale) -> Chart:
    """Each other side over the first: every round's ratio, the estimate so far and its 95% interval."""
    figure = empty("chart.speed_up", "chart.round", "chart.ratio", locale)
    figure["layout"]["yaxis"]["rangemode"] = "normal"
    baseline, *others = [side.label for side in run.sides]
    for index, side in enumerate(others, start=1):
        ratios = [
            (completed.number + 1, ratio)
            for completed in rounds
            if (ratio := compare([completed.values], side, baseline, run.workload.objective).speed_up) is not None
        ]
        if ratios:
            _add_ratios(figure, index, side, ratios, locale)
            _add_target(figure, index, ratios, run, locale)
    return noted(_by_number(with_equality_line(figure), len(rounds)), "chart.no_round", locale)


def _add_ratios(figure: Chart, index: int, side: str, ratios: Sequence[tuple[int, float]], locale: Locale) -> None:
    numbers = [number for number, _ in ratios]
    logs = [log(ratio) for _, ratio in ratios]
    so_far, lows, highs = _running(logs)
    known = len(lows)
    if known:
        edge = {
            "type": "scatter",
            "mode": "lines",
            "x": numbers[-known:],
            "line": {"width": 0},
            "hoverinfo": "skip",
        }
        fill = {"fill": "tonexty", "fillcolor": translucent(COLOURS[index], BAND_OPACITY)}
        name = say("chart.interval", locale)
        figure["data"] += [{**edge, "y": lows, "showlegend": False}, {**edge, "y": highs, "name": name, **fill}]
    line(figure, say("chart.estimate", locale, side=side), index, numbers, so_far)
    if known:
        # The latest interval is drawn as a bar, too: a band of a single round has no width.
        unknown = [None] * (len(numbers) - 1)
        above, below = highs[-1] - so_far[-1], so_far[-1] - lows[-1]
        bar = {"type": "data", "symmetric": False, "array": [*unknown, above], "arrayminus": [*unknown, below]}
        figure["data"][-1]["error_y"] = bar
    line(figure, say("chart.each_round", locale), index, numbers, [ratio for _, ratio in ratios], mode="markers")


def _running(logs: Sequence[float]) -> tuple[list[float], list[float], list[float]]:
    """After each round: the geometric mean so far; and from MIN_ROUNDS on, both ends of its 95% interval."""
    sums, squares = list(accumulate(logs)), list(accumulate(value * value for value in logs))
    lows, highs = [], []
    for count in range(MIN_ROUNDS, len(logs) + 1):
        mean = sums[count - 1] / count
        spread = sqrt(max(0.0, squares[count - 1] / count - mean * mean) * count / (count - 1))
        half = half_width(spread, count)
        lows.append(exp(mean - half))
        highs.append(exp(mean + half))
    return [exp(total / count) for count, total in enumerate(sums, start=1)], lows, highs


def _add_target(figure: Chart, index: int, ratios: Sequence[tuple[int, float]], run: Run, locale: Locale) -> None:
    """Add the target width of the interval, around the estimate."""
    assert run.measurement is not None
    width = run.measurement.target_width
    estimate = exp(sum(log(ratio) for _, ratio in ratios) / len(ratios))
    x = [1, max(ratios[-1][0], MIN_ROUNDS)]
    name = say("chart.target", locale, percent=50 * width)
    for sign in (-1, 1):
        line(figure, name, index, x, [estimate * (1 + sign * width / 2)] * 2, dash="dot")
        figure["data"][-1] |= {"showlegend": sign == 1, "hoverinfo": "skip"}


def by_round(run: Run, rounds: Sequence[Round], locale: Locale) -> Chart:
    """The deciding figure of each side by round: a drift is visible here."""
    figure = empty(f"chart.by_{run.workload.objective}", "chart.round", f"chart.{run.workload.objective}", locale)
    numbers = [completed.number + 1 for completed in rounds]
    for index, side in enumerate(run.sides):
        values = [completed.values[side.label] for completed in rounds]
        if any(value is not None for value in values):
            line(figure, side.label, index, numbers, values, mode="lines+markers")
    return noted(_by_number(figure, len(rounds)), "chart.no_round", locale)


def _by_number(figure: Chart, rounds: int) -> Chart:
    last = max(rounds, MIN_ROUNDS)
    figure["layout"]["xaxis"] |= {"range": [0.5, last + 0.5], "dtick": ceil(last / 12), "tick0": 1}
    return figure


def distributions(run: Run, done: Sequence[Sequence[Trial]], locale: Locale) -> dict[str, Chart]:
    """Share of the requests that took at most so long: TTFT, TPOT and E2EL; a limit that was set is marked."""
    assert run.measurement is not None
    figures_of = [[request_figures(trace) for trial in trials for trace in trial.requests] for trials in done]
    charts = {}
    for name in FIGURES:
        figure = empty(f"chart.{name}_share", f"chart.{name}", "chart.share_of_requests", locale)
        figure["layout"]["xaxis"]["rangemode"] = "normal"
        for index, (side, requests) in enumerate(zip(run.sides, figures_of, strict=True)):
            values = [value for request in requests if (value := getattr(request, f"{name}_ms")) is not None]
            if values:
                line(figure, side.label, index, *_cumulative(values))
        limit = getattr(run.measurement.limits, f"{name}_ms")
        if limit is not None:
            mark = {"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": limit, "x1": limit}
            figure["layout"]["shapes"] = [{**mark, "line": {"color": "#d55e00", "width": 1, "dash": "dash"}}]
        charts[f"{name}_share"] = noted(as_share(figure), "chart.waiting", locale)
    return charts


def _cumulative(values: Sequence[float]) -> tuple[list[float], list[float | None]]:
    """The values' percentiles and their shares: 101 points say as much as thousands."""
    if len(values) == 1:
        return [values[0], values[0]], [0.0, 1.0]
    cuts = [min(values), *quantiles(values, n=100, method="inclusive"), max(values)]
    return [round(cut, 3) for cut in cuts], [share / 100 for share in range(101)]


def _sampled(
    run: Run, title: str, y: str, readings: dict[str, Reading], locale: Locale, nothing: str = "chart.unreported"
) -> Chart:
    """One line for each side and reading; a side's turns are not joined."""
    figure = empty(title, "chart.run_seconds", y, locale)
    for index, side in enumerate(run.sides):
        for dash, (name, reading) in zip(("solid", "dot"), readings.items(), strict=False):
            points = list(_points(side, reading))
            if any(value is not None for _, value in points):
                label = f"{side.label} · {say(f'chart.{name}', locale)}" if name else side.label
                seconds, values = zip(*points, strict=True)
                line(figure, label, index, seconds, values, dash=dash)
    sampled = any(side.samples for side in run.sides)
    return noted(figure, nothing if sampled else "chart.waiting", locale)


def _points(side: SideRecord, reading: Reading) -> Iterator[tuple[float, float | None]]:
    """(seconds since the run's start, what the reading says); None between two turns."""
    starts = [trial.started_ms for trial in side.trials]
    earlier: Sample | None = None
    turn = -1
    for sample in side.samples[:: ceil(len(side.samples) / SAMPLES) or 1]:
        now = bisect_right(starts, sample.ms) - 1
        if now != turn and earlier is not None:
            yield round(sample.ms / 1000, 2), None
            earlier = None
        turn = now
        yield round(sample.ms / 1000, 2), reading(sample, earlier, side.trials[turn].before if turn >= 0 else None)
        earlier = sample


def _gauge(name: str) -> Reading:
    return lambda sample, earlier, before: getattr(sample.counters, name)


def _generated(sample: Sample, earlier: Sample | None, before: Counters | None) -> float | None:
    """Output tokens a second since the sample before."""
    now = sample.counters.generation_tokens
    then = earlier.counters.generation_tokens if earlier else None
    if earlier is None or now is None or then is None:
        return None
    return (now - then) / (sample.ms - earlier.ms) * 1000


def _prefix_hits(sample: Sample, earlier: Sample | None, before: Counters | None) -> float | None:
    """Prompt tokens found in the prefix cache, of those looked up since the trial began."""
    queries = _since(sample, before, "prefix_cache_queries")
    hits = _since(sample, before, "prefix_cache_hits")
    return hits / queries if queries and hits is not None else None


def _preempted(sample: Sample, earlier: Sample | None, before: Counters | None) -> float | None:
    return _since(sample, before, "preemptions")


def _since(sample: Sample, before: Counters | None, name: str) -> int | None:
    """A counter's increase since the trial began; None where it is not known."""
    now, then = getattr(sample.counters, name), getattr(before, name, None)
    return None if now is None or then is None else now - then

"""Has lm-evaluation-harness, where it is installed, ask all sides its tasks after the last round. Not timed.

It runs as a command of its own and asks the sides' endpoints as any client does: the engines and the settings are
those that were measured. Only tasks that have answers written are possible; speculation changes nothing else.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from .asking import AT_ONCE, OnProgress
from .domain.errors import InvalidInput
from .domain.measurement import Harness
from .domain.records import HarnessEvidence, HarnessScores, Problem, Run
from .load.endpoint import Endpoint
from .load.forward import reachable
from .processes import run_lines

logger = logging.getLogger(__name__)

MODELS = {"chat": "local-chat-completions", "completions": "local-completions"}
PROGRESS = re.compile(r"Requesting API.*?(\d+)/(\d+) \[")
# The end of what it says, for the log and for whoever wonders.
KEPT_LINES = 200
# (task, metric) -> question -> score.
Scores = dict[tuple[str, str], dict[int, float]]


class HarnessFailed(Exception):
    """It ended without results; `said` is what it printed last, line by line."""

    def __init__(self, said: Iterable[str]) -> None:
        super().__init__()
        self.said = list(said)


def installed() -> str | None:
    """The command, beside this Python or on the PATH."""
    return shutil.which("lm_eval", path=str(Path(sys.executable).parent)) or shutil.which("lm_eval")


def check(plan: Harness | None) -> None:
    """Raises InvalidInput where it is asked for and not there."""
    if plan is not None and installed() is None:
        raise InvalidInput("harness.not_installed")


async def examine(
    plan: Harness, run: Run, sides: Sequence[Endpoint], timeout_s: float, on_progress: OnProgress
) -> HarnessEvidence:
    """Every side's score of every question. What fails is told in `problem`; nothing of that raises. Cancel it to
    stop: its commands end."""
    done = [(0, 0)] * len(sides)

    def heard(side: int) -> Callable[[int, int], None]:
        def hear(answered: int, asked: int) -> None:
            done[side] = (answered, asked)
            on_progress(sum(a for a, _ in done), sum(b for _, b in done))

        return hear

    on_progress(0, 0)
    found: list[tuple[str, Scores]] = []
    for index, endpoint in enumerate(sides):
        try:
            found.append(await _evaluated(plan, endpoint, timeout_s, heard(index)))
        except HarnessFailed as error:
            label = run.sides[index].label
            logger.error("run %s: lm-evaluation-harness on %s:\n%s", run.id, label, "\n".join(error.said))
            params: dict[str, object] = {"side": label, "said": "".join(error.said[-1:]), "run": run.id}
            return HarnessEvidence("", problem=Problem("harness.failed", params))
    scores = tuple(_side_by_side([own for _, own in found]))
    return HarnessEvidence(found[0][0], scores, None if scores else Problem("harness.no_scores"))


async def _evaluated(
    plan: Harness, endpoint: Endpoint, timeout_s: float, hear: Callable[[int, int], None]
) -> tuple[str, Scores]:
    """The harness's version, and one side's scores."""
    said: deque[str] = deque(maxlen=KEPT_LINES)
    with tempfile.TemporaryDirectory(prefix="harness-") as place:
        async with reachable(endpoint) as url:
            command = _command(plan, endpoint, url, timeout_s, place)
            try:
                async for line in run_lines(command, environment=_environment(endpoint)):
                    if progress := PROGRESS.search(line):
                        hear(int(progress[1]), int(progress[2]))
                    else:
                        said.append(endpoint.without_key(line.strip()))
            except (subprocess.CalledProcessError, OSError):
                raise HarnessFailed(said) from None
        return await asyncio.to_thread(_results, Path(place))


def _command(plan: Harness, endpoint: Endpoint, url: str, timeout_s: float, output: str) -> list[str]:
    model = {
        "model": endpoint.model,
        "base_url": url + endpoint.path,
        "num_concurrent": AT_ONCE,
        "max_retries": 2,
        "timeout": int(timeout_s),
        "tokenizer_backend": None,
        "tokenized_requests": False,
    }
    # As JSON: in a list of name=value a model's name could bring more of them.
    asked = ["--model", MODELS[endpoint.api], "--model_args", json.dumps(model), "--tasks", ",".join(plan.tasks)]
    asked += [] if plan.limit is None else ["--limit", str(plan.limit)]
    asked += ["--apply_chat_template"] if endpoint.api == "chat" else []
    return [installed() or "lm_eval", *asked, "--output_path", output, "--log_samples"]


def _environment(endpoint: Endpoint) -> dict[str, str]:
    """Ours, with the endpoint's key. A proxy is for its data sets, not for loopback."""
    key = endpoint.headers.get("Authorization", "Bearer none").removeprefix("Bearer ")
    direct = ",".join(filter(None, [os.environ.get("no_proxy"), "127.0.0.1"]))
    return {**os.environ, "OPENAI_API_KEY": key, "no_proxy": direct, "NO_PROXY": direct}


def _results(place: Path) -> tuple[str, Scores]:
    """From the files that it leaves: one with all results, and for each task one with a line a question."""
    summary = next(place.rglob("results_*.json"), None)
    if summary is None:
        raise HarnessFailed(["no results"])
    version = str(json.loads(summary.read_text("utf-8")).get("lm_eval_version", ""))
    scores: Scores = {}
    for file in sorted(place.rglob("samples_*.jsonl")):
        # samples_TASK_DATE.jsonl
        task = file.stem.removeprefix("samples_").rpartition("_")[0]
        for line in file.read_text("utf-8").splitlines():
            _add(scores, task, json.loads(line))
    return version, scores


def _add(scores: Scores, task: str, sample: dict[str, Any]) -> None:
    """A metric whose value for one question is no number (BLEU's, say) has no mean to compare."""
    for metric in sample["metrics"]:
        value = sample.get(metric)
        if isinstance(value, bool | int | float):
            filtered = sample.get("filter", "none")
            name = metric if filtered == "none" else f"{metric}, {filtered}"
            scores.setdefault((task, name), {})[int(sample["doc_id"])] = float(value)


def _side_by_side(sides: Sequence[Scores]) -> Iterable[HarnessScores]:
    for key in dict.fromkeys(key for own in sides for key in own):
        questions = sorted({question for own in sides for question in own.get(key, {})})
        yield HarnessScores(
            *key, tuple(tuple(own.get(key, {}).get(question) for question in questions) for own in sides)
        )

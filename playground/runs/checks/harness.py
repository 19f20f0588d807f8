"""Runs lm-evaluation-harness, where it is installed, on all sides after the last round. Not timed.

The harness runs as a separate command and queries the sides' endpoints as any client does: the engines and the
settings are those that were measured. Only tasks for which the model writes an answer are possible; speculation
affects nothing else.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.evidence import HarnessEvidence, HarnessScores
from playground.domain.record.run import Run
from playground.domain.spec.measurement import Harness
from playground.load.endpoint import Endpoint
from playground.load.forward import reachable
from playground.processes import Guarded, ended_by_signal, quiet_environment, run_lines
from playground.workers import RUNS

from .client import AT_ONCE, OnProgress

logger = logging.getLogger(__name__)

MODELS = {"chat": "local-chat-completions", "completions": "local-completions"}
NOT_FOUND = re.compile(r"Tasks not found: (.+)")
PROGRESS = re.compile(r"Requesting API.*?(\d+)/(\d+) \[")
# If the last line only reports a failed request, a line that says why it failed is more useful.
REFUSED = re.compile(r"API request failed.*")
REQUEST_ERROR = re.compile(r"\S*(ClientResponseError|HTTPError|RetryError|TimeoutError)\b")
POLL_S = 0.5
# Listing its tasks takes the harness about ten seconds.
LOOKING_UP_S = 120.0
# The limit for each side: a set of tasks must not occupy the engines for hours.
LONGEST_S = 3600.0
KEPT_LINES = 200
LOG_BYTES = 5_000_000
Key = tuple[str, str]


@dataclass
class SideResults:
    """The results of one side. `scores`: task and metric -> question -> score; `lower`: where less is better."""

    version: str = ""
    scores: dict[Key, dict[int, float]] = field(default_factory=dict)
    lower: set[Key] = field(default_factory=set)

    def add(self, task: str, sample: Mapping[str, Any], higher_is_better: Mapping[str, Any]) -> None:
        """Add the scores of one question. A metric whose value is no number (BLEU's, say) has no mean and is left
        out."""
        for metric in sample["metrics"]:
            value = sample.get(metric)
            if isinstance(value, bool | int | float):
                filtered = sample.get("filter", "none")
                key = (task, metric if filtered == "none" else f"{metric}, {filtered}")
                self.scores.setdefault(key, {})[int(sample["doc_id"])] = float(value)
                if higher_is_better.get(metric) is False:
                    self.lower.add(key)


class HarnessFailed(Exception):
    """The harness ended without results. `lines` holds the last lines that it printed."""

    def __init__(self, lines: Iterable[str], exit_code: int = 1) -> None:
        super().__init__()
        self.lines = list(lines)[-KEPT_LINES:]
        self._exit_code = exit_code

    @property
    def reason(self) -> str | Message:
        if (ending := ended_by_signal(self._exit_code)) is not None:
            return ending
        last = self.lines[-1] if self.lines else ""
        refused = [line for line in self.lines if REFUSED.search(line)]
        return refused[-1] if refused and REQUEST_ERROR.match(last) else last


def installed() -> str | None:
    """The path of the `lm_eval` command, beside this Python or on the PATH; None if it is not installed."""
    return shutil.which("lm_eval", path=str(Path(sys.executable).parent)) or shutil.which("lm_eval")


def check(plan: Harness | None) -> None:
    """Raises InvalidInput if the plan needs the harness and it is not installed."""
    if plan is not None and installed() is None:
        raise InvalidInput("harness.not_installed")


async def check_tasks(plan: Harness | None) -> None:
    """Raises InvalidInput for tasks that the harness does not know. Runs the harness, which takes about ten
    seconds."""
    if plan is None:
        return
    files = [task for task in plan.tasks if _is_file(task)]
    names = [task for task in plan.tasks if not _is_file(task)]
    missing = [task for task in files if not _is_there(task)]
    if unknown := missing or (await _unknown(names) if names else []):
        raise InvalidInput("harness.unknown_tasks", tasks=", ".join(unknown))


def _is_file(task: str) -> bool:
    return "/" in task or task.endswith((".yaml", ".yml"))


def _is_there(task: str) -> bool:
    return Path(task).is_file()


async def _unknown(names: Sequence[str]) -> list[str]:
    """The names that the harness does not know. Empty if it can't check them: the run itself will show it then."""
    command, lines = [installed() or "lm_eval", "validate", "--tasks", ",".join(names)], list[str]()
    with tempfile.TemporaryDirectory(prefix="harness-") as empty:
        try:
            async with asyncio.timeout(LOOKING_UP_S):
                async for line in run_lines(command, environment=environment(), folder=Path(empty)):
                    lines.append(line)
        except subprocess.CalledProcessError:
            if match := next(filter(None, map(NOT_FOUND.match, lines)), None):
                return match[1].split(", ")
            logger.warning("lm-evaluation-harness can't check tasks:\n%s", "\n".join(lines[-KEPT_LINES:]))
        except (OSError, TimeoutError):
            logger.exception("lm-evaluation-harness can't check tasks")
    return []


async def examine(
    plan: Harness, run: Run, sides: Sequence[Endpoint], timeout_s: float, on_progress: OnProgress
) -> HarnessEvidence:
    """Every side's score of every question. The first failure ends the examination and goes into `problem`, beside
    the scores collected before it; nothing is raised for it. Cancel the coroutine to stop: the command ends."""
    results = [SideResults() for _ in sides]
    problem: Message | None = None
    for index, endpoint in enumerate(sides):

        def report_progress(done: int, total: int, before: int = index) -> None:
            # All sides get the same questions. Their number is known with the first request.
            if total:
                on_progress(before * total + done, len(sides) * total)

        try:
            results[index] = await _evaluated(plan, endpoint, timeout_s, report_progress)
        except HarnessFailed as error:
            label = run.sides[index].label
            logger.error("run %s: lm-evaluation-harness on %s:\n%s", run.id, label, "\n".join(error.lines))
            problem = Message("harness.failed", {"side": label, "said": error.reason, "run": run.id})
            break
    scores = tuple(_side_by_side(results))
    if problem is None and not scores:
        problem = Message("harness.no_scores")
    return HarnessEvidence(results[0].version, scores, problem)


async def _evaluated(
    plan: Harness, endpoint: Endpoint, timeout_s: float, report_progress: Callable[[int, int], None]
) -> SideResults:
    """The results of one side. Raises HarnessFailed."""
    with tempfile.TemporaryDirectory(prefix="harness-") as name:
        place = Path(name)
        try:
            async with reachable(endpoint) as url:
                settings = place / "lm_eval.yaml"
                # JSON is valid YAML. The API key is in this file, which only its owner can reach, and on no
                # command line.
                settings.write_text(json.dumps(_settings(plan, endpoint, url, timeout_s, place / "results")))
                await _finished(
                    [installed() or "lm_eval", "run", "--config", str(settings)], place, report_progress, endpoint
                )
            return await RUNS.run(_results, place / "results")
        except (OSError, ValueError, KeyError, TypeError) as error:
            logger.exception("lm-evaluation-harness's results can't be read")
            raise HarnessFailed([repr(error)]) from error


async def _finished(
    command: Sequence[str], place: Path, report_progress: Callable[[int, int], None], endpoint: Endpoint
) -> None:
    """Return when the command has ended well; it can't outlive this process. Raises HarnessFailed."""
    log, empty = place / "log", place / "empty"
    empty.mkdir()
    # The command runs in an empty folder, because a task's name could also be read as a folder's.
    guarded = Guarded.start(command, environment(), log, folder=empty, log_bytes=LOG_BYTES)
    try:
        async with asyncio.timeout(LONGEST_S):
            while not await guarded.ended_within(POLL_S):
                report_progress(*await RUNS.run(lambda: progress(log.read_text("utf-8", errors="replace"))))
    except TimeoutError:
        raise HarnessFailed([f"not finished after {LONGEST_S / 60:.0f} min"]) from None
    finally:
        code = await guarded.end()
    if code != 0:
        lines = _lines(log.read_text("utf-8", errors="replace"))
        raise HarnessFailed(map(endpoint.without_key, lines), code)


def progress(log: str) -> tuple[int, int]:
    """(answered, total) so far. The harness asks in groups, each with a progress bar that begins at 0."""
    done = total = before = 0
    for match in PROGRESS.finditer(log):
        answered, questions = int(match[1]), int(match[2])
        if answered < done or (questions != total and total):
            before += total
        done, total = answered, questions
    return before + done, before + total


def _lines(log: str) -> Iterator[str]:
    for line in log.replace("\r", "\n").split("\n"):
        if line.strip() and not PROGRESS.search(line):
            yield line.strip()


def _settings(plan: Harness, endpoint: Endpoint, url: str, timeout_s: float, output: Path) -> dict[str, Any]:
    return {
        "model": MODELS[endpoint.api],
        "model_args": {
            "model": endpoint.model,
            "base_url": url + endpoint.path,
            "header": dict(endpoint.headers) or {"Authorization": "Bearer none"},
            "num_concurrent": AT_ONCE,
            "max_retries": 3,
            "timeout": int(timeout_s),
            "tokenizer_backend": None,
            "tokenized_requests": False,
        },
        "tasks": [str(Path(task).absolute()) if _is_file(task) else task for task in plan.tasks],
        "limit": plan.limit,
        "apply_chat_template": endpoint.api == "chat",
        "output_path": str(output),
        "log_samples": True,
    }


def environment() -> dict[str, str]:
    """This process's environment without secrets, because tasks are other people's code; the hub's token is kept,
    because some of their data sets are gated. A proxy applies to data sets only, never to loopback."""
    variables = quiet_environment(kept=("HF_TOKEN",))
    hosts = (os.environ.get("no_proxy") or os.environ.get("NO_PROXY"), "127.0.0.1")
    direct = ",".join(filter(None, hosts))
    return {**variables, "no_proxy": direct, "NO_PROXY": direct}


def _results(place: Path) -> SideResults:
    """Read the files that the harness writes: one with all results, and for each task one with a line per
    question."""
    summary = next(place.rglob("results_*.json"), None)
    if summary is None:
        raise HarnessFailed(["no results"])
    results = json.loads(summary.read_text("utf-8"))
    side = SideResults(str(results.get("lm_eval_version", "")))
    for file in sorted(place.rglob("samples_*.jsonl")):
        # samples_TASK_DATE.jsonl
        task = file.stem.removeprefix("samples_").rpartition("_")[0]
        # Not splitlines: an answer may hold other separators of lines.
        for line in filter(None, file.read_text("utf-8").split("\n")):
            side.add(task, json.loads(line), results.get("higher_is_better", {}).get(task, {}))
    return side


def _side_by_side(sides: Sequence[SideResults]) -> Iterator[HarnessScores]:
    for key in dict.fromkeys(key for side in sides for key in side.scores):
        questions = sorted({question for side in sides for question in side.scores.get(key, {})})
        rows = tuple(tuple(side.scores.get(key, {}).get(question) for question in questions) for side in sides)
        yield HarnessScores(*key, rows, higher_is_better=all(key not in side.lower for side in sides))

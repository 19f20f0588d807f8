"""How far an engine's start has got, and where its seconds went, by its log."""

from __future__ import annotations

import re

from playground.domain.message import Message
from playground.domain.record.run import StartStage

# The stages of a start, and the log lines that show them. A start never falls back to an earlier stage.
STAGES: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("importing", re.compile(r"$.")),
    ("configuring", re.compile(r"non-default args|Resolved architecture")),
    ("engine_core", re.compile(r"Initializing a V1 LLM engine")),
    (
        "loading_weights",
        re.compile(r"Starting to load model|Loading model from scratch|Loading safetensors|Loading weights"),
    ),
    ("loading_draft", re.compile(r"Loading drafter model")),
    ("profiling", re.compile(r"Model loading took")),
    ("compiling", re.compile(r"Dynamo bytecode transform|Compiling a graph|Start compiling|Cache the graph")),
    (
        "allocating_kv",
        re.compile(r"KV cache size|Available KV cache memory|GiB for KV cache|reserved .* KV cache"),
    ),
    ("warming_up", re.compile(r"Warming up|Capturing CUDA graph|Graph capturing|\[Autotuner\]|[Aa]utotuning")),
    ("serving", re.compile(r"Starting vLLM (?:API )?server|Application startup complete")),
)
_ANY_STAGE = re.compile("|".join(pattern.pattern for _, pattern in STAGES))
# Functions of vLLM that a traceback shows, each with its stage; "DraftModel.load_model" calls "load_model", too.
FUNCTIONS = re.compile(
    r"\b(?:(?P<configuring>create_engine_config|create_model_config|create_speculative_config)"
    r"|(?P<loading_weights>load_model|load_weights|get_model|initialize_model)"
    r"|(?P<profiling>profile_run|determine_available_memory|determine_num_available_blocks)"
    r"|(?P<warming_up>capture_model|compile_or_warm_up_model|kernel_warmup)"
    r"|(?P<allocating_kv>initialize_kv_cache\w*|initialize_from_config|get_kv_cache_configs?)"
    r"|(?P<answering>run_busy_loop|execute_model_with_error_logging))\b"
)
STAGE_NAMES = ("waiting", *(name for name, _ in STAGES), "ready")
# Only for an engine that died after its start, which this line ends: one that runs is ready.
ANSWERING = "answering"
STARTED = "Application startup complete"
# Finer than what a failure needs to know: the core's own imports, and graphs apart from the kernels' warm-up.
MARKS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("core_importing", re.compile(r"Resolved architecture|Using max model len")),
    ("profiling", re.compile(r"Initial profiling/warmup run took|Profiling CUDA graph memory")),
    ("capturing", re.compile(r"Capturing CUDA graph|CUDA graph capture|Graph capturing")),
    ("serving", re.compile(r"init engine \(profile")),
)
# Printed when it is over.
DYNAMO = re.compile(r"Dynamo bytecode transform time: (\d+(?:\.\d+)?) s")


def stage_of(line: str) -> str | None:
    """The stage that a log line tells of, or None."""
    if _ANY_STAGE.search(line) is None:
        return None
    return next((name for name, pattern in STAGES if pattern.search(line)), None)


def later(stage: str, other: str) -> bool:
    """Whether `stage` comes after `other`."""
    return STAGE_NAMES.index(stage) > STAGE_NAMES.index(other)


def stage_message(stage: str | None) -> Message:
    """The name of a stage; None: the log does not show it."""
    return Message("stage.unseen") if stage is None else Message(f"stage.{stage}")


def stage_of_frame(frame: str) -> str | None:
    """The stage in which this frame of a traceback runs, or None."""
    match = FUNCTIONS.search(frame)
    return match.lastgroup if match else None


class StageSeconds:
    """Each stage lasts until a line tells of another one; one that comes again, as for a draft, is added to.
    Times are monotonic seconds."""

    def __init__(self, began: float) -> None:
        self._stage, self._since = "importing", began
        self._seconds: dict[str, float] = {}

    def read(self, line: str, now: float) -> None:
        """A line that was seen at this time."""
        marked = next((name for name, pattern in MARKS if pattern.search(line)), None)
        stage = marked or stage_of(line)
        # Its workers print "Using max model len" of a draft once more.
        if stage is None or (stage == "core_importing" and "engine_core" in (self._stage, *self._seconds)):
            return
        took = DYNAMO.search(line)
        self._enter(stage, max(self._since, now - float(took[1])) if took else now)

    def ended(self, now: float) -> tuple[StartStage, ...]:
        """The stages in their order, if the start is over at this time."""
        self._enter("ready", now)
        return tuple(StartStage(name, round(seconds, 2)) for name, seconds in self._seconds.items())

    def _enter(self, stage: str, at: float) -> None:
        self._seconds[self._stage] = self._seconds.get(self._stage, 0.0) + at - self._since
        self._stage, self._since = stage, at

"""From log lines and an exit code to what went wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..domain.errors import EngineFailed

# The first pattern found anywhere in the log wins, so the more specific causes stand first.
CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (f"failure.{name}", re.compile(pattern, re.IGNORECASE | re.MULTILINE))
    for name, pattern in (
        ("vocabulary", r"Target and draft model should have the same vocabulary size"),
        ("context_too_long", r"User-specified max_model_len \(\d+\) is greater than the derived"),
        ("kv_too_small", r"To serve at least one request with the models?'s max seq len"),
        ("no_kv_memory", r"No available memory for the cache blocks"),
        ("gpu_busy", r"Free memory on device .* is less than desired"),
        ("gpu_memory", r"CUDA out of memory|torch\.OutOfMemoryError"),
        ("cpu_memory", r"DefaultCPUAllocator: can't allocate memory|Cannot allocate memory|MemoryError"),
        ("model_missing", r"Invalid repository ID or local directory specified|is not a valid model identifier"),
        (
            "architecture",
            r"Model architectures .* (?:are not supported|failed to be inspected)|not supported for now",
        ),
        ("remote_code", r"trust_remote_code=True"),
        ("dependency", r"(?:ImportError|ModuleNotFoundError): (?P<detail>.+)"),
        ("bad_argument", r"error: (?P<detail>(?:argument|unrecognized arguments).+)"),
        ("address_taken", r"Errno 98|Address already in use"),
        (
            "validation",
            r"ValidationError: .*\n(?:.*\n)?.*?(?P<detail>Value error, .+?)(?: \[|\n|$)",
        ),
        (
            "other",
            r"^(?:\([^)]*\) )?(?:ERROR .*\] )?(?P<detail>(?:Value|Runtime|OS|Type|Key|NotImplemented)Error: .+)$",
        ),
    )
)
SIGNALS = {
    137: "failure.killed",
    132: "failure.illegal_instruction",
    139: "failure.crashed",
    134: "failure.crashed",
}


def diagnose(log: Sequence[str], exit_code: int, log_file: str) -> EngineFailed:
    """One sentence for the cause, and the last lines of the log."""
    tail = [line for line in log if line.strip()][-30:]
    text = "\n".join(log)
    for message_id, pattern in CAUSES:
        # The same exception is often logged by worker, core and server in turn: the first is the cause.
        if found := pattern.search(text):
            detail = found.groupdict().get("detail") or ""
            return EngineFailed(message_id, tail, detail=detail.strip(), log=log_file)
    message_id = SIGNALS.get(exit_code, "failure.unknown")
    return EngineFailed(message_id, tail, code=exit_code, log=log_file, detail="")

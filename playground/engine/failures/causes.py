"""From log lines and an exit code to what went wrong, with the figures that the log gives.

What to change then is in `remedy_rules.py`; docs/failures.md lists both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from playground.domain.errors import EngineFailed
from playground.domain.message import Message
from playground.processes import exit_code_text, signal_name

from .stages import reached

TAIL_LINES = 30
# Characters of a log line that are looked at; a pattern takes up to their square.
LONGEST_LINE = 4000
# A traceback shows the source of a message, too, with nothing filled in.
SOURCE = re.compile(r"(?:\([^)]*\) )?(?:ERROR [^]]*\] )? {4}")

# name -> a message of vLLM, torch or Python. The first pattern found anywhere in the log wins, so the more
# specific causes stand first. Named groups become the parameters of the sentence `failure.NAME`.
CAUSES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern, re.MULTILINE))
    for name, pattern in (
        # Speculation
        (
            "vocabulary",
            r"Target and draft model should have the same vocabulary size\."
            r"(?: Target model vocab_size=(?P<target>\d+)\. Draft model vocab_size=(?P<draft>\d+))?",
        ),
        (
            "draft_parallel",
            r"speculative_draft_tensor_parallel_size=(?P<size>\d+) cannot be other value than 1 or target model",
        ),
        # Context length
        (
            "context_too_long",
            r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len "
            r"\(\w+=(?P<limit>\d+)",
        ),
        (
            "prefill_too_small",
            r"max_num_batched_tokens \((?P<tokens>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
        ),
        (
            "batch_too_small",
            r"max_num_batched_tokens \((?P<tokens>\d+)\) must be greater than or equal to max_num_seqs "
            r"\((?P<seqs>\d+)\)",
        ),
        # Memory
        (
            "kv_too_small",
            r"To serve at least one request with the models?'s max seq len \((?P<asked>\d+)\), "
            r"\((?P<needed>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory "
            r"\((?P<room>[\d.]+) GiB\)(?:.*estimated maximum model length is (?P<fits>\d+))?",
        ),
        ("no_kv_memory", r"No available memory for the cache blocks"),
        (
            "gpu_busy",
            r"Free memory on device (?:\S+ )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
            r"is less than desired GPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        ),
        (
            "cpu_busy",
            r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
            r"is less than desired CPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        ),
        (
            "cpu_kv",
            r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on kv cache allocation "
            r"is less than requested memory for kv \((?P<wanted>[\d.]+)",
        ),
        (
            "sampler_memory",
            r"CUDA out of memory occurred when warming up (?:sampler|pooler).+?with (?P<seqs>\d+) dummy requests",
        ),
        (
            "gpu_memory",
            r"CUDA out of memory(?:\. Tried to allocate (?P<wanted>[\d.]+ \w+)\. GPU \d+ has a total capacity of "
            r"(?P<total>[\d.]+ \w+) of which (?P<free>[\d.]+ \w+) is free)?",
        ),
        ("cpu_memory", r"can't allocate memory|Cannot allocate memory|MemoryError|std::bad_alloc"),
        # Devices
        (
            "too_many_gpus",
            r"World size \((?P<wanted>\d+)\) is larger than the number of available GPUs \((?P<available>\d+)\)",
        ),
        (
            "cpu_parallel",
            r"Given number of CPU id list .+ doesn't match local world size (?P<parts>\d+)",
        ),
        ("needs_gpu", r"pin_memory=True requires a CUDA"),
        (
            "heads",
            r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<size>\d+)\)",
        ),
        ("bfloat16", r"Bfloat16 is only supported on GPUs"),
        (
            "quantization_dtype",
            r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>[\w-]+)\. "
            r"Supported dtypes: \[(?P<supported>[^\]\n]+)\]",
        ),
        # The model
        (
            "quantization",
            r"(?P<detail>Unknown quantization method: \S+?(?=\. )|Cannot find the config file for \w+"
            r"|Quantization method specified in the model config .+? argument \(\w+\)"
            r"|The quantization method \S+ is not supported for the current GPU"
            r"|\b\w{1,64} quantization is currently not supported in \w+)",
        ),
        (
            "model_missing",
            r"Invalid repository ID or local directory specified|is not a valid model identifier|Repo id must be",
        ),
        ("hub_offline", r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https://"),
        (
            "architecture",
            r"(?:Model architectures \['|model type `)(?P<detail>\w+)['`\]]+ "
            r"(?:are not supported|failed to be inspected|but Transformers does not recognize)",
        ),
        (
            "head_size",
            r"(?P<detail>(?:Selected backend|No valid attention backend).*head_size not supported.*)",
        ),
        (
            "backend",
            r"(?P<detail>Unknown attention backend: \S+|Selected backend .+ is not valid.+"
            r"|No valid attention backend .+)",
        ),
        ("method", r"(?P<detail>Unsupported speculative method: \S+)"),
        (
            "model_broken",
            r"(?P<detail>It looks like the config file at .+ is not a valid JSON file"
            r"|Cannot find any model weights|Error while deserializing header.*|Attempted to load weight .+"
            r"|start \(\d+\) \+ length \(\d+\) exceeds dimension size \(\d+\))",
        ),
        ("remote_code", r"argument `trust_remote_code=True`"),
        # The runtime
        (
            "compiler",
            r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler|Python\.h: No such file",
        ),
        ("dependency", r"(?:ImportError|ModuleNotFoundError): (?P<detail>.+)"),
        ("bad_argument", r"error: (?P<detail>(?:argument (?P<flag>--[\w-]+)|unrecognized arguments).+)"),
        ("address_taken", r"Errno 98|[Aa]ddress already in use"),
        ("disk_full", r"Errno 28|No space left on device"),
        (
            "validation",
            r"ValidationError: .*\n(?:.*\n)?.*?Value error, (?P<detail>.+?)(?: \[type=|\n|$)",
        ),
        # A part that was ended from outside leaves no message of its own, only the number of the signal.
        ("killed", r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )-9\b"),
        ("illegal_instruction", r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )-4\b"),
        ("crashed", r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )(?P<code>-\d+)"),
        (
            "other",
            r"^(?:\([^)\n]*\) )?(?:ERROR .*\] )?(?!\w+: (?:Engine core|WorkerProc) initialization failed)"
            r"(?P<detail>[\w.]*(?:Error|Exception): .+)$",
        ),
        ("core_died", r"Engine core initialization failed|EngineDeadError"),
    )
)
# 128 + n where signal n ended the server itself.
SIGNALS = {137: "killed", 132: "illegal_instruction", 139: "crashed", 134: "crashed"}
# What the engine was really started with, defaults included: a remedy is relative to it.
FIGURES = tuple(
    re.compile(pattern)
    for pattern in (
        r"'gpu_memory_utilization': (?P<gpu_memory_utilization>[\d.]+)",
        r"'max_num_seqs': (?P<max_num_seqs>\d+)",
        r"max_num_batched_tokens=(?P<max_num_batched_tokens>\d+)",
        r"Explicitly set \((?P<kv_set>[\d.]+)/[\d.]+\) GiB for KV cache",
    )
)


def diagnose(log: Sequence[str], exit_code: int, log_file: str) -> EngineFailed:
    """The cause, with the stage it struck in, and the last lines of the log. Blocking: a long log takes time."""
    log = [line[:LONGEST_LINE] for line in log]
    text = "\n".join(line for line in log if not SOURCE.match(line))
    for name, pattern in CAUSES:
        # The same exception is often logged by worker, core and server in turn: the first is the cause.
        if found := pattern.search(text):
            params = {"code": exit_code, **_named(found)}
            return _failed(name, log, reached(log), log_file, {**params, "code": _code(params["code"])})
    return _failed(SIGNALS.get(exit_code, "unknown"), log, reached(log), log_file, {"code": _code(exit_code)})


def _code(exit_code: object) -> object:
    """A number, as ever, unless there is a signal to name."""
    return exit_code_text(exit_code) if isinstance(exit_code, int) and signal_name(exit_code) else exit_code


def hung(log: Sequence[str], stage: str, seconds: float, in_stage_s: float, log_file: str) -> EngineFailed:
    """It was given up after `seconds`, of which it spent the last `in_stage_s` in one stage."""
    return _failed("timeout", log, stage, log_file, {"seconds": seconds, "in_stage_s": in_stage_s})


def _failed(name: str, log: Sequence[str], stage: str, log_file: str, params: dict[str, object]) -> EngineFailed:
    tail = [line for line in log if line.strip()][-TAIL_LINES:]
    figures = {
        figure: value
        for pattern in FIGURES
        for line in log
        if (m := pattern.search(line))
        for figure, value in _named(m).items()
    }
    known = {**figures, **params, "stage": Message(f"stage.{stage}"), "log": log_file}
    return EngineFailed(f"failure.{name}", tail, **known)


def _named(found: re.Match[str]) -> dict[str, object]:
    """The groups as numbers where they are numbers; "-" where the message did not say."""
    return {name: _value(text) for name, text in found.groupdict().items()}


def _value(text: str | None) -> int | float | str:
    if text is None:
        return "-"
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            pass
    return text.strip()

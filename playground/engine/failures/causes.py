"""The table of causes: what a log says when a start failed for one of them, and what to change then.

A cause is an entry here, two sentences in messages/failures.toml (`failure.NAME`, `remedy.NAME`), a log of it
among the tests, and a row in docs/failures.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from . import remedy_rules
from .remedy_rules import Rule


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an engine failed.

    `pattern`: a message of vLLM, torch or Python; its named groups become the parameters of the sentence. None: a
    cause that no log shows. `changes` offers what to change then.
    """

    name: str
    pattern: str | None
    changes: Rule = remedy_rules.nothing

    def search(self, log: str) -> re.Match[str] | None:
        """The first match in the log."""
        return None if self.pattern is None else re.search(self.pattern, log, re.MULTILINE)


# The first that is found anywhere in the log wins, so the more specific causes stand first.
CAUSES: tuple[Cause, ...] = (
    # Speculation
    Cause(
        "vocabulary",
        r"Target and draft model should have the same vocabulary size\."
        r"(?: Target model vocab_size=(?P<target>\d+)\. Draft model vocab_size=(?P<draft>\d+))?",
        remedy_rules.mapped_vocabulary,
    ),
    Cause(
        "draft_parallel",
        r"speculative_draft_tensor_parallel_size=(?P<size>\d+) cannot be other value than 1 or target model",
        remedy_rules.set_to("speculation.draft_tensor_parallel_size", None),
    ),
    # Context length
    Cause(
        "context_too_long",
        r"User-specified max_model_len \((?P<asked>\d+)\) is greater than the derived max_model_len "
        r"\(\w+=(?P<limit>\d+)",
        remedy_rules.largest_context,
    ),
    Cause(
        "prefill_too_small",
        r"max_num_batched_tokens \((?P<tokens>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
        remedy_rules.full_prefill,
    ),
    Cause(
        "batch_too_small",
        r"max_num_batched_tokens \((?P<tokens>\d+)\) must be greater than or equal to max_num_seqs "
        r"\((?P<seqs>\d+)\)",
        remedy_rules.matching_batch,
    ),
    # Memory
    Cause(
        "kv_too_small",
        r"To serve at least one request with the models?'s max seq len \((?P<asked>\d+)\), "
        r"\((?P<needed>[\d.]+) GiB KV cache is needed, which is larger than the available KV cache memory "
        r"\((?P<room>[\d.]+) GiB\)(?:.*estimated maximum model length is (?P<fits>\d+))?",
        remedy_rules.room_for_one_request,
    ),
    Cause("no_kv_memory", r"No available memory for the cache blocks", remedy_rules.room_for_kv),
    Cause(
        "gpu_busy",
        r"Free memory on device (?:\S+ )?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
        r"is less than desired GPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        remedy_rules.what_is_free,
    ),
    Cause(
        "cpu_busy",
        r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
        r"is less than desired CPU memory utilization \((?P<share>[\d.]+), (?P<wanted>[\d.]+) GiB\)",
        remedy_rules.what_is_free,
    ),
    Cause(
        "cpu_kv",
        r"Available memory on node \d+ \((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on kv cache allocation "
        r"is less than requested memory for kv \((?P<wanted>[\d.]+)",
        remedy_rules.kv_that_fits,
    ),
    Cause(
        "sampler_memory",
        r"CUDA out of memory occurred when warming up (?:sampler|pooler).+?with (?P<seqs>\d+) dummy requests",
        remedy_rules.fewer_sequences,
    ),
    Cause(
        "gpu_memory",
        r"CUDA out of memory(?:\. Tried to allocate (?P<wanted>[\d.]+ \w+)\. GPU \d+ has a total capacity of "
        r"(?P<total>[\d.]+ \w+) of which (?P<free>[\d.]+ \w+) is free)?",
        remedy_rules.by_stage,
    ),
    Cause(
        "cpu_memory",
        r"can't allocate memory|Cannot allocate memory|MemoryError|std::bad_alloc",
        remedy_rules.less_memory,
    ),
    # Devices
    Cause(
        "too_many_gpus",
        r"World size \((?P<wanted>\d+)\) is larger than the number of available GPUs \((?P<available>\d+)\)",
        remedy_rules.available_gpus,
    ),
    Cause(
        "cpu_parallel",
        r"Given number of CPU id list .+ doesn't match local world size (?P<parts>\d+)",
        remedy_rules.one_part,
    ),
    Cause("needs_gpu", r"pin_memory=True requires a CUDA", remedy_rules.without_gpu),
    Cause(
        "heads",
        r"attention heads \((?P<heads>\d+)\) must be divisible by tensor parallel size \((?P<size>\d+)\)",
        remedy_rules.dividing_heads,
    ),
    Cause("bfloat16", r"Bfloat16 is only supported on GPUs", remedy_rules.set_to("knobs.dtype", "float16")),
    Cause(
        "quantization_dtype",
        r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>[\w-]+)\. "
        r"Supported dtypes: \[(?P<supported>[^\]\n]+)\]",
        remedy_rules.supported_dtype,
    ),
    # The model
    Cause(
        "quantization",
        r"(?P<detail>Unknown quantization method: \S+?(?=\. )|Cannot find the config file for \w+"
        r"|Quantization method specified in the model config .+? argument \(\w+\)"
        r"|The quantization method \S+ is not supported for the current GPU"
        r"|\b\w{1,64} quantization is currently not supported in \w+)",
        remedy_rules.back_to_default("quantization"),
    ),
    Cause(
        "model_missing",
        r"Invalid repository ID or local directory specified|is not a valid model identifier|Repo id must be",
    ),
    Cause("hub_offline", r"LocalEntryNotFoundError|OfflineModeIsEnabled|couldn't connect to 'https://"),
    Cause(
        "architecture",
        r"(?:Model architectures \['|model type `)(?P<detail>\w+)['`\]]+ "
        r"(?:are not supported|failed to be inspected|but Transformers does not recognize)",
    ),
    Cause(
        "head_size",
        r"(?P<detail>(?:Selected backend|No valid attention backend).*head_size not supported.*)",
        remedy_rules.back_to_default("attention_backend"),
    ),
    Cause(
        "backend",
        r"(?P<detail>Unknown attention backend: \S+|Selected backend .+ is not valid.+"
        r"|No valid attention backend .+)",
        remedy_rules.back_to_default("attention_backend"),
    ),
    Cause("method", r"(?P<detail>Unsupported speculative method: \S+)", remedy_rules.no_speculation),
    Cause(
        "model_broken",
        r"(?P<detail>It looks like the config file at .+ is not a valid JSON file"
        r"|Cannot find any model weights|Error while deserializing header.*|Attempted to load weight .+"
        r"|start \(\d+\) \+ length \(\d+\) exceeds dimension size \(\d+\))",
    ),
    Cause("remote_code", r"argument `trust_remote_code=True`"),
    # The runtime
    Cause(
        "compiler",
        r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler|Python\.h: No such file",
        remedy_rules.set_to("knobs.enforce_eager", True),
    ),
    Cause("dependency", r"(?:ImportError|ModuleNotFoundError): (?P<detail>.+)", remedy_rules.without_suffix),
    Cause(
        "bad_argument",
        r"error: (?P<detail>(?:argument (?P<flag>--[\w-]+)|unrecognized arguments).+)",
        remedy_rules.without_argument,
    ),
    Cause("address_taken", r"Errno 98|[Aa]ddress already in use"),
    Cause("disk_full", r"Errno 28|No space left on device"),
    Cause(
        "validation",
        r"ValidationError: .*\n(?:.*\n)?.*?Value error, (?P<detail>.+?)(?: \[type=|\n|$)",
    ),
    # A process that a signal ended leaves no message, only the signal's number.
    Cause(
        "killed",
        r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )-9\b",
        remedy_rules.less_memory,
    ),
    Cause("illegal_instruction", r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )-4\b"),
    Cause("crashed", r"(?:Failed core proc\(s\): \{.*: |died unexpectedly \(exit code: )(?P<code>-\d+)"),
    Cause(
        "other",
        r"^(?:\([^)\n]*\) )?(?:ERROR .*\] )?(?!\w+: (?:Engine core|WorkerProc) initialization failed)"
        r"(?P<detail>[\w.]*(?:Error|Exception): .+)$",
    ),
    Cause("core_died", r"Engine core initialization failed|EngineDeadError", remedy_rules.less_memory),
    # Without a message: an exit code that says nothing, and a start that was given up.
    Cause("unknown", None),
    Cause("timeout", None, remedy_rules.without_slow_stages),
)
BY_NAME = {cause.name: cause for cause in CAUSES}
# 128 + n where signal n ended the server itself.
SIGNALS = {137: "killed", 132: "illegal_instruction", 139: "crashed", 134: "crashed"}

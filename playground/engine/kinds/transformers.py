"""`transformers serve`: static, a request at a time in each of its threads, and with continuous batching. It comes
with vLLM."""

from __future__ import annotations

from .kind import Kind, Launch, Switch, listening
from .program import Program, package, script, torch_device

BLOCK_SIZE = 32
# On a CPU its cache would take most of the machine's memory. So many tokens where the host's limit is not known.
KV_TOKENS = 8_192
KNOBS: dict[str, str | Switch] = {
    "dtype": "--dtype",
    "quantization": "--quantization",
    "attention_backend": "--attn-implementation",
    "seed": "--default-seed",
}


def _find() -> Program | None:
    version, path = package("transformers"), script("transformers")
    if version is None or path is None or not (package("fastapi") and package("uvicorn")):
        return None
    return Program((path, "serve"), version, torch_device())


def _words(launch: Launch) -> list[str]:
    return [launch.target, f"--device={launch.program.device}", *listening(launch)]


def _batching(launch: Launch) -> list[str]:
    words = [*_words(launch), "--continuous-batching"]
    if launch.program.device == "cpu":
        block_size = launch.settings.knobs.block_size or BLOCK_SIZE
        words.append(f"--cb-num-blocks={(launch.kv_tokens or KV_TOKENS) // block_size}")
        if launch.settings.knobs.block_size is None:
            words.append(f"--cb-block-size={BLOCK_SIZE}")
    return words


STATIC = Kind(
    name="transformers",
    find=_find,
    brings="pip install 'transformers[serving]'",
    typed="transformers serve",
    words=_words,
    knobs=KNOBS,
    answers_to=lambda launch: launch.target,
    trust_flag="--trust-remote-code",
)
BATCHING = Kind(
    name="transformers-batching",
    find=_find,
    brings=STATIC.brings,
    typed=STATIC.typed,
    words=_batching,
    knobs={
        **KNOBS,
        "block_size": "--cb-block-size",
        "max_num_batched_tokens": "--cb-max-batch-tokens",
        "gpu_memory_utilization": "--cb-max-memory-percent",
    },
    answers_to=STATIC.answers_to,
    trust_flag=STATIC.trust_flag,
)

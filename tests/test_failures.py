"""From a dead engine's log and exit code to one sentence."""

from __future__ import annotations

import pytest

from playground.engine.failures import CAUSES, SIGNALS, diagnose
from playground.text import LOCALES, say_problem

CORE = "(EngineCore_DP0 pid=42) ERROR 11-29 18:00:00 [core.py:708] "
SERVER = "(APIServer pid=40) "
DIED = f"{SERVER}RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{}}"

# The lines as vLLM 0.32 writes them, shortened.
LOGS = {
    "failure.no_kv_memory": [
        f"{CORE}ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.",
        DIED,
    ],
    "failure.kv_too_small": [
        f"{CORE}ValueError: To serve at least one request with the model's max seq len (8192), (0.18 GiB KV "
        "cache is needed, which is larger than the available KV cache memory (0.1 GiB).",
        DIED,
    ],
    "failure.context_too_long": [
        f"{SERVER}pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig",
        f"{SERVER}  Value error, User-specified max_model_len (99999) is greater than the derived max_model_len "
        "(max_position_embeddings=8192.0 or model_max_length=None in model's config.json).",
    ],
    "failure.vocabulary": [
        f"{SERVER}pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig",
        f"{SERVER}  Value error, Target and draft model should have the same vocabulary size. "
        "Target model vocab_size=49152. Draft model vocab_size=151936.",
    ],
    "failure.model_missing": [
        f"{SERVER}  Value error, Invalid repository ID or local directory specified: '/nowhere'.",
    ],
    "failure.gpu_memory": [
        f"{CORE}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has 139 GiB.",
        DIED,
    ],
    "failure.gpu_busy": [
        f"{CORE}ValueError: Free memory on device cuda:0 (20.1/139.7 GiB) on startup is less than desired GPU "
        "memory utilization (0.92, 128.5 GiB).",
        DIED,
    ],
    "failure.address_taken": ["OSError: [Errno 98] Address already in use"],
    "failure.cpu_memory": [
        f"{CORE}RuntimeError: [enforce fail at alloc_cpu.cpp:121] . DefaultCPUAllocator: can't allocate memory",
        DIED,
    ],
    "failure.architecture": [
        f"{SERVER}  Value error, Model architectures ['FooForCausalLM'] are not supported for now.",
    ],
    "failure.dependency": ["ImportError: Arctic Inference is required for suffix decoding."],
    "failure.bad_argument": ["entry.py: error: unrecognized arguments: --no-such-flag"],
    "failure.other": [DIED],
}


@pytest.mark.parametrize("message_id", LOGS)
def test_log(message_id: str) -> None:
    noise = ["INFO 11-29 18:00:00 [model.py:1] Resolved architecture: LlamaForCausalLM", ""]
    # Worker, core and server each log their own end after the cause.
    failure = diagnose([*noise, *LOGS[message_id], "nanobind: leaked 2 instances!"], 1, "/s/e.log")
    assert failure.message_id == message_id
    assert failure.log_tail[-1].startswith("nanobind")
    assert "" not in failure.log_tail
    for locale in LOCALES:
        assert say_problem(failure, locale)


@pytest.mark.parametrize("model", ["model's", "models's"])
def test_both_spellings_of_a_message(model: str) -> None:
    """0.32 mended the spelling of older versions; both are supported."""
    log = [f"ValueError: To serve at least one request with the {model} max seq len (8192), (0.18 GiB KV cache"]
    assert diagnose(log, 1, "/s/e.log").message_id == "failure.kv_too_small"


@pytest.mark.parametrize(
    ("message_id", "words"),
    [
        ("failure.dependency", "Arctic Inference is required"),
        ("failure.bad_argument", "--no-such-flag"),
        ("failure.other", "Engine core initialization failed"),
    ],
)
def test_detail_is_said(message_id: str, words: str) -> None:
    assert words in say_problem(diagnose(LOGS[message_id], 1, "/s/e.log"))


def test_refused_settings_are_told_in_vllms_words() -> None:
    log = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for SchedulerConfig",
        "  Value error, max_num_batched_tokens (8) must be at least max_num_seqs (16). [type=value_error]",
    ]
    failure = diagnose(log, 1, "/s/e.log")
    assert failure.message_id == "failure.validation"
    assert "max_num_batched_tokens (8) must be" in say_problem(failure)
    assert "[type" not in say_problem(failure)


@pytest.mark.parametrize(
    ("code", "message_id"),
    [
        (137, "failure.killed"),
        (132, "failure.illegal_instruction"),
        (139, "failure.crashed"),
        (134, "failure.crashed"),
        (1, "failure.unknown"),
        # A server whose engine core died ends with 0.
        (0, "failure.unknown"),
    ],
)
def test_exit_code_of_a_silent_engine(code: int, message_id: str) -> None:
    for log in ([], ["INFO all is well"]):
        failure = diagnose(log, code, "/s/e.log")
        assert failure.message_id == message_id
        for locale in LOCALES:
            assert say_problem(failure, locale)


def test_the_first_of_several_errors_is_the_cause() -> None:
    log = ["ValueError: the cause", "RuntimeError: what followed"]
    assert diagnose(log, 1, "/s/e.log").params["detail"] == "ValueError: the cause"


def test_the_tail_is_short() -> None:
    failure = diagnose([f"line {number}" for number in range(100)], 1, "/s/e.log")
    assert failure.log_tail == [f"line {number}" for number in range(70, 100)]


@pytest.mark.parametrize("message_id", sorted({name for name, _ in CAUSES} | set(SIGNALS.values())))
@pytest.mark.parametrize("locale", LOCALES)
def test_every_cause_can_be_said(message_id: str, locale: str) -> None:
    """Causes found in the log come with `detail`, those by exit code with `code`: both fill every sentence."""
    failure = diagnose([], 1, "/s/e.log")
    failure.message_id = message_id
    assert say_problem(failure, locale)

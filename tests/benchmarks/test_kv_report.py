"""Our bytes of KV cache against those that vLLM allocated, and that the benchmark's table still comes out."""

from __future__ import annotations

import sys

import pytest

from benchmarks import kv_report
from playground.domain.fit.kv_cache import kv_bytes
from playground.domain.fit.shape import ModelShape

# vLLM 0.32 on a CPU, as the benchmark printed it: bytes a token, and of one sequence of 4096 tokens.
REPORTED = {
    "llama": (4096, 16_777_216),
    "qwen3-moe": (4096, 16_777_216),
    "mixtral": (4096, 16_777_216),
    "falcon, multi-query": (2048, 8_388_608),
    "gemma2, windows": (4096, 13_893_632),
    "gemma3, windows": (4096, 11_730_944),
    "gemma3n, shared caches": (2048, 6_946_816),
    "gpt-oss, windows": (4096, 13_107_200),
    "deepseek-v2, latent": (9216, 37_748_736),
    "qwen3-next, hybrid": (1024, 6_684_672),
    "jamba, hybrid": (1024, 5_767_168),
    "granite, hybrid": (1024, 6_553_600),
}


@pytest.mark.parametrize("family", REPORTED)
def test_bytes_are_those_that_vllm_allocates(family: str) -> None:
    """A sequence's blocks are whole: up to 4% more. States of hybrid models come on top, and are not estimated."""
    shape = ModelShape.of(kv_report.FAMILIES[family])
    assert shape is not None
    assert shape.understood, shape.unclear
    token, sequence = REPORTED[family]
    assert kv_bytes(shape, 1, 2, batched=1) == token
    estimated = kv_bytes(shape, kv_report.LENGTH, 2, batched=kv_report.BATCHED)
    assert estimated <= sequence
    assert shape.stateful or estimated >= 0.96 * sequence


def test_the_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answers = [{"token": 4096.0, "state": 0.0, "sequence": 16_777_216.0}, "no such kernel"]
    monkeypatch.setattr(kv_report, "report", lambda python, config: answers.pop(0))
    kv_report.main(sys.executable, ["llama", "mixtral"])
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("llama | 4096 | 4096 | 1.000 | 16777216 | 16777216 | 1.000")
    assert printed[2].endswith("not started: no such kernel")

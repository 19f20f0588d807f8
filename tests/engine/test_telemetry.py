"""What /metrics says: a page in vLLM 0.32's own form, shortened."""

from __future__ import annotations

import httpx
import pytest

from playground.domain.record.counters import Counters
from playground.engine.telemetry import parse, read_counters

PAGE = """\
# HELP python_gc_objects_collected_total Objects collected during gc
# TYPE python_gc_objects_collected_total counter
python_gc_objects_collected_total{generation="0"} 12345.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="playground"} 1.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="playground"} 2.0
# HELP vllm:num_requests_waiting_by_reason Number of waiting requests grouped by waiting reason.
# TYPE vllm:num_requests_waiting_by_reason gauge
vllm:num_requests_waiting_by_reason{engine="0",model_name="playground",reason="capacity"} 2.0
vllm:num_requests_waiting_by_reason{engine="0",model_name="playground",reason="deferred"} 5.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="playground"} 0.015625
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="playground"} 0.0
# HELP vllm:num_preemptions_created Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_created gauge
vllm:num_preemptions_created{engine="0",model_name="playground"} 1.7645e+09
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="playground"} 96.0
"""

SPECULATION = """\
# HELP vllm:spec_decode_num_drafts_total Number of spec decoding drafts.
# TYPE vllm:spec_decode_num_drafts_total counter
vllm:spec_decode_num_drafts_total{engine="0",model_name="playground"} 21.0
# TYPE vllm:spec_decode_num_drafts_created gauge
vllm:spec_decode_num_drafts_created{engine="0",model_name="playground"} 1.7645e+09
# TYPE vllm:spec_decode_num_draft_tokens_total counter
vllm:spec_decode_num_draft_tokens_total{engine="0",model_name="playground"} 105.0
# TYPE vllm:spec_decode_num_accepted_tokens_total counter
vllm:spec_decode_num_accepted_tokens_total{engine="0",model_name="playground"} 70.0
# TYPE vllm:spec_decode_num_accepted_tokens_per_pos_total counter
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="playground",position="0"} 20.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="playground",position="10"} 1.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="playground",position="2"} 17.0
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine="0",model_name="playground",position="1"} 18.0
"""

PLAIN = Counters(running=1, waiting=2, kv_cache_usage=0.015625, generation_tokens=96, preemptions=0)


def test_without_speculation() -> None:
    assert parse(PAGE) == PLAIN


def test_with_speculation() -> None:
    found = parse(PAGE + SPECULATION)
    assert (found.drafts, found.draft_tokens, found.accepted_tokens) == (21, 105, 70)
    # In the order of the positions, which is not that of their names.
    assert found.accepted_per_position == (20, 18, 17, 1)
    assert found.running == 1


def test_ranks_are_summed() -> None:
    second = PAGE.replace('engine="0"', 'engine="1"')
    found = parse(PAGE + "".join(line + "\n" for line in second.splitlines() if not line.startswith("#")))
    assert (found.running, found.generation_tokens) == (2, 192)


@pytest.mark.parametrize("page", ["", "# nothing\n", "go_goroutines 5\n"])
def test_another_servers_page_is_unknown(page: str) -> None:
    assert parse(page) == Counters()


@pytest.mark.parametrize(
    ("running", "waiting", "idle"), [(0, 0, True), (1, 0, False), (0, 1, False), (None, None, False)]
)
def test_idle(running: int | None, waiting: int | None, idle: bool) -> None:
    assert Counters(running=running, waiting=waiting).idle is idle


@pytest.mark.parametrize(("status", "text", "expected"), [(200, PAGE, PLAIN), (503, PAGE, None), (None, "", None)])
async def test_an_engine_that_does_not_answer_is_unknown(
    status: int | None, text: str, expected: Counters | None
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if status is None:
            raise httpx.ConnectError("gone")
        return httpx.Response(status, text=text)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://engine") as client:
        assert await read_counters(client) == expected

"""What is exported for vLLM's benchmark tools has their keys and values, and can be imported again."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from support.finished_runs import RUNS, failed
from support.measured_run import measured_run
from support.sweep_run import made_sweep

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.record.metrics import side_figures
from playground.report.exports.files import exported, formats_of
from playground.report.exports.vllm_bench import vllm_bench_text
from playground.store.foreign.runs import documents, runs_of


def results_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def written_keys(source: str) -> set[str]:
    """What `vllm bench serve` always writes, by its source: in a table with goodput, or assigned one by one."""
    keys = set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            names = {
                key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            keys |= names if "request_goodput" in names else set()
    return keys | {*assigned(source)}


def assigned(source: str) -> Iterator[str]:
    """The keys of `result_json[...] = ...` that no condition stands before."""
    for function in ast.walk(ast.parse(source)):
        for node in getattr(function, "body", []) if isinstance(function, ast.AsyncFunctionDef) else []:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(target, ast.Subscript) and ast.unparse(target.value) == "result_json":
                assert isinstance(target.slice, ast.Constant)
                yield target.slice.value


def test_the_keys_are_those_of_vllm() -> None:
    spec = find_spec("vllm")
    if spec is None or spec.origin is None:
        pytest.skip("vLLM is not installed here")
    source = (Path(spec.origin).parent / "benchmarks" / "serve.py").read_text(encoding="utf-8")
    keys = written_keys(source)
    assert {"date", "backend", "request_rate", "max_concurrency", "output_throughput", "itls"} <= keys
    latencies = {f"{of}_{name}_ms" for name in ("ttft", "tpot", "itl") for of in ("mean", "median", "std", "p99")}
    for result in results_of(vllm_bench_text(measured_run())):
        assert keys | latencies <= {*result}


def test_totals_are_of_the_requests_that_succeeded() -> None:
    run = measured_run()
    trial = run.sides[0].trials[0]
    trial.requests[0].problem = Message("stream.closed")
    result = results_of(vllm_bench_text(run))[0]
    assert result["failed"] == 1
    assert result["completed"] == len(run.sides[0].requests) - 1
    assert result["total_output_tokens"] == sum(result["output_lens"])
    assert result["output_throughput"] == pytest.approx(sum(result["output_lens"]) / result["duration"])


def test_what_sent_nothing_is_not_offered() -> None:
    assert "vllm-bench" not in formats_of(failed())
    assert "vllm-bench" in formats_of(measured_run())


def test_the_values_are_those_of_the_run() -> None:
    run = measured_run()
    text = vllm_bench_text(run)
    again = runs_of([*documents(text)])
    assert [other.sides[0].label for other in again] == [side.label for side in run.sides]
    for side, other, result in zip(run.sides, again, results_of(text), strict=True):
        ours, theirs = side_figures(side), side_figures(other.sides[0])
        assert ours.ttft_ms is not None
        assert theirs.ttft_ms is not None
        assert theirs.ttft_ms.mean == pytest.approx(ours.ttft_ms.mean)
        assert theirs.tpot_ms is not None
        assert ours.tpot_ms is not None
        assert theirs.tpot_ms.p99 == pytest.approx(ours.tpot_ms.p99)
        assert theirs.output_tokens_per_s == pytest.approx(ours.output_tokens_per_s)
        assert theirs.acceptance_rate == (ours.acceptance_rate and pytest.approx(ours.acceptance_rate))
        assert theirs.requests == ours.requests == len(result["ttfts"]) == result["completed"] + result["failed"]
        assert result["total_output_tokens"] == sum(result["output_lens"])
        assert result["output_throughput"] == pytest.approx(result["total_output_tokens"] / result["duration"])
        lengths = zip(result["ttfts"], result["itls"], result["latencies"], strict=True)
        assert all(first + sum(gaps) == pytest.approx(latency) for first, gaps, latency in lengths)


def test_one_side_alone() -> None:
    run = measured_run()
    [result] = results_of(vllm_bench_text(run, run.sides[1].label))
    assert result["label"] == run.sides[1].label
    with pytest.raises(InvalidInput):
        vllm_bench_text(run, "no such side")


def test_a_sweep_says_what_it_varied() -> None:
    results = results_of(vllm_bench_text(made_sweep("k=1,2,3", failed=(1,), left=(2,))))
    assert {"1", "3"} >= {result["k"] for result in results} >= {"1"}


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_any_run(number: int) -> None:
    run = RUNS[number]()
    if any(side.requests for side in run.sides):
        text = exported(run, "vllm-bench")
        assert len(runs_of([*documents(text)])) == len(results_of(text))
    with pytest.raises(InvalidInput, match="export"):
        exported(run, "original")
    assert "original" not in formats_of(run)

"""Another tool's file -> runs, one for each result in it; and back from the document that is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.record.reported import Reported, Tool
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import AttachedEndpoint
from playground.domain.spec.workload import Workload
from playground.domain.url import BaseUrl
from playground.domain.validation import validate

from . import guidellm, vllm_bench
from .result import Result, Values

READERS = {"vllm_bench": vllm_bench.read, "guidellm": guidellm.read}
NAMES: dict[Tool, str] = {"vllm_bench": "vllm bench serve", "guidellm": "GuideLLM"}
MOST_RESULTS = 1000
BEGIN = re.compile(r"\S")
# In place of an endpoint's address that the tool does not tell: a name that no host has.
NO_ADDRESS = "http://unknown.invalid/v1"


def documents(text: str) -> Iterator[tuple[str, Any]]:
    """The JSON values of a file, one after the other as --append-result writes them, each with its own text.
    Raises ValueError or RecursionError where there is none."""
    decoder, end = json.JSONDecoder(), 0
    while (begin := BEGIN.search(text, end)) is not None:
        value, end = decoder.raw_decode(text, begin.start())
        yield text[begin.start() : end], value


def runs_of(values: Sequence[tuple[str, Any]]) -> list[Run]:
    """Raises InvalidInput for what is no result of a tool that is known, or a damaged one."""
    results = [part for text, value in values for part in _parts(text, value)]
    if not results or len(results) > MOST_RESULTS:
        raise InvalidInput("foreign.results", results=len(results), most=MOST_RESULTS)
    return [_run(tool, text) for tool, text in results]


def reported_of(tool: Tool, document: str) -> tuple[Reported, Result]:
    """What is stored of a side, read again."""
    result = READERS[tool](Values(json.loads(document)))
    return Reported(tool, result.version, document), result


def _parts(text: str, value: Any) -> Iterator[tuple[Tool, str]]:
    """The results of one document, each as a document of its own."""
    if not isinstance(value, dict):
        raise InvalidInput("foreign.unknown")
    if vllm_bench.is_of(value):
        yield "vllm_bench", text
    elif guidellm.is_of(value):
        benchmarks = value["benchmarks"]
        for benchmark in benchmarks:
            alone = {**value, "benchmarks": [benchmark]}
            yield "guidellm", text if len(benchmarks) == 1 else json.dumps(alone)
    else:
        raise InvalidInput("foreign.unknown")


def _run(tool: Tool, document: str) -> Run:
    reported, result = reported_of(tool, document)
    digest = sha256(document.encode("utf-8", "surrogatepass")).hexdigest()
    name = " ".join(part for part in (NAMES[tool], reported.version) if part)
    side = SideRecord(
        label=result.label[:200],
        settings=validate(
            AttachedEndpoint, {"base_url": _address(result), "model": result.model}, where=NAMES[tool]
        ),
        runtime_version=result.engine_version,
        placement=name,
        contended=False,
        figures=result.figures,
        reported=reported,
    )
    return Run(
        # The same result has the same id, so that it is imported once.
        id=f"{result.created_at:%Y%m%d-%H%M%S}-{digest[:8]}",
        created_at=result.created_at.isoformat(timespec="seconds"),
        mode="imported",
        workload=Workload(prompt=result.prompts or name),
        sides=[side],
        measurement=Measurement(profile=result.profile, check_outputs=False),
        status="done",
        seed=None,
    )


def _address(result: Result) -> str:
    try:
        return str(BaseUrl.parse(result.address or NO_ADDRESS).api)
    except ValueError:
        # It may hold a key.
        return NO_ADDRESS

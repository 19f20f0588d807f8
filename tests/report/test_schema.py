"""Every JSON document of the command line is what schema.json says, and schema.json is what the types say."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from support.finished_runs import RUNS, done, stopped, uncounted
from support.schema import SCHEMA, check

from playground import presets
from playground.cli.main import main
from playground.cli.verbs import doctor
from playground.config import Config
from playground.domain.answers.agreement import agreements
from playground.domain.message import Message
from playground.domain.record.evidence import OutputEvidence, Repeats, TopLogprobs
from playground.domain.record.run import Run, SideRecord
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.spec.workload import Sampling, Workload
from playground.report.documents.answers import outputs_document
from playground.report.documents.comparison import compare_document
from playground.report.schema import FILE, schema_text
from playground.store import History


def checked_outputs(documents: list[Any]) -> list[Any]:
    return [check("agreement", document) for document in documents]


def test_the_written_schema_is_what_the_types_say() -> None:
    """`python -m playground.report.schema` writes it anew."""
    assert FILE.read_text(encoding="utf-8") == schema_text()


def test_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_every_object_forbids_unknown_keys() -> None:
    def loose(node: Any, where: str) -> list[str]:
        if isinstance(node, list):
            return [found for i, item in enumerate(node) for found in loose(item, f"{where}[{i}]")]
        if not isinstance(node, dict):
            return []
        own = [where] if node.get("type") == "object" and "additionalProperties" not in node else []
        return own + [found for key, value in node.items() for found in loose(value, f"{where}.{key}")]

    assert loose(SCHEMA, "") == []


@pytest.mark.parametrize("make", RUNS)
def test_compare_document(make: Callable[[], Run]) -> None:
    check("compare", compare_document(make()))


def test_figures_are_null_where_unknown() -> None:
    document = check("compare", compare_document(stopped()))
    waiting = document["sides"][1]
    assert waiting["figures"]["ttft_ms"] is None
    assert waiting["figures"]["acceptance_rate"] is None
    assert waiting["figures"]["output_tokens_per_s"] is None
    assert waiting["figures"]["errors"] == {"stopped": 1}
    assert waiting["requests"][0]["finish_reason"] is None


def test_uncounted_chunks_are_null_and_approximate() -> None:
    counted, unknown = check("compare", compare_document(uncounted()))["sides"]
    assert [tokens for _, tokens in counted["requests"][0]["chunks"]] == [None, None, None]
    assert counted["figures"]["approximate"] is True
    assert counted["figures"]["itl_ms"] is None
    assert counted["requests"][0]["token_ids"] is None
    assert unknown["figures"]["output_tokens"] is None


def test_outputs_at_temperature_0() -> None:
    logprobs = (TopLogprobs(0, 0, 1, {2: -0.9, 3: -0.8}), TopLogprobs(1, 0, 1, {3: -0.7, 2: -0.8}))
    answers: list[list[list[int] | None]] = [[[1, 2], [4], None], [[1, 3], [4, 5], [6]]]
    found = agreements(answers, OutputEvidence(logprobs), ["float32", "bfloat16"], temperature=0)
    (told,) = checked_outputs(outputs_document(found, ["off", "n-gram"]))
    assert (told["side"], told["baseline"], told["compared"], told["identical"]) == ("n-gram", "off", 2, 0)
    assert (told["near_tie_nats"], told["sampled"]) == (0.25, None)
    near, ended = told["divergences"]
    assert (near["kind"], near["prompt"], near["position"], near["tokens"]) == ("near-tie", 0, 1, [2, 3])
    assert near["top"] == [[[3, -0.8], [2, -0.9]], [[3, -0.7], [2, -0.8]]]
    assert (ended["kind"], ended["tokens"], ended["top"]) == ("unknown", [None, 5], [None, None])


@pytest.mark.parametrize("count", [3, 20])
def test_outputs_above_temperature_0(count: int) -> None:
    repeats = tuple(Repeats(side, ((1, 2),) * count) for side in (0, 1))
    found = agreements([[], []], OutputEvidence(repeats=repeats), [None, None], temperature=1)
    (told,) = checked_outputs(outputs_document(found, ["off", "n-gram"], "zh-CN"))
    assert (told["compared"], told["identical"], told["divergences"]) == (None, None, [])
    assert told["sampled"]["samples"] == [count, count]
    assert told["sampled"]["p_value"] == (1 if count == 20 else None)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda document: document.update(surprise=1),
        lambda document: document["sides"][0]["figures"].pop("ttft_ms"),
        lambda document: document["sides"][0]["figures"].update(ttft_ms=0.2),
        lambda document: document["sides"][0]["settings"]["knobs"].update(max_num_seq=8),
        lambda document: document["sides"][1]["settings"]["speculation"].update(model="m"),
        lambda document: document["machine"].pop("cores"),
        lambda document: document.update(status="winning"),
    ],
)
def test_schema_refuses(spoil: Callable[[Any], Any]) -> None:
    document = json.loads(json.dumps(compare_document(done())))
    wrong = copy.deepcopy(document)
    spoil(wrong)
    check("compare", document)
    with pytest.raises(ValidationError):
        check("compare", wrong)


def test_every_knob_and_method_is_described() -> None:
    definitions = SCHEMA["$defs"]
    settings = definitions["engine_settings"]["properties"]
    fields: dict[str, set[str]] = {}
    for reference in settings["speculation"]["oneOf"]:
        method = definitions[reference["$ref"].rpartition("/")[2]]["properties"]
        for name in [method["method"]["const"]] if "const" in method["method"] else method["method"]["enum"]:
            fields[name] = set(method)
    assert fields == {name: set(model.model_fields) for name, model in SPECULATION_METHODS.items()}
    assert set(definitions["knobs"]["properties"]) == set(Knobs.model_fields)
    assert set(settings) == set(EngineSettings.model_fields)
    assert set(definitions["sampling"]["properties"]) == set(Sampling.model_fields)
    assert set(definitions["workload"]["properties"]) == set(Workload.model_fields)


@pytest.mark.parametrize("name", presets.names())
def test_shipped_presets_fit(name: str) -> None:
    preset = presets.load(name)
    sides = [SideRecord(side.label, side.engine) for side in preset.sides]
    run = Run("run", "2030-01-02T03:04:05+01:00", "race", preset.workload, sides, preset=name)
    check("compare", compare_document(run))


def test_history_and_show_print_documents(capsys: pytest.CaptureFixture[str], config: Config) -> None:
    history = History(config.db)
    for make in RUNS[:3]:
        run = make()
        history.begin(run)
        for position, one in enumerate(run.sides):
            for trial in one.trials:
                history.save_trial(run.id, position, trial, dict(enumerate(trial.requests)))
        history.finish(run)

    assert main(["history", "list", "--json"]) == 0
    listed = check("history_list", json.loads(capsys.readouterr().out))
    assert {item["id"] for item in listed} == {"run-done", "run-stopped", "run-failed"}
    for item in listed:
        assert main(["history", "show", item["id"], "--json"]) == 0
        shown = check("compare", json.loads(capsys.readouterr().out))
        assert main(["history", "export", item["id"], "--format", "json"]) == 0
        saved = json.loads(capsys.readouterr().out)
        assert saved.pop("record")
        assert saved == shown
    assert shown == json.loads(json.dumps(compare_document(next(m() for m in RUNS if m().id == shown["run_id"]))))


def test_an_empty_history_prints_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["history", "list", "--json"]) == 0
    assert check("history_list", json.loads(capsys.readouterr().out)) == []


def test_doctor_document(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    # Asking a real runtime imports vLLM, which takes its time and is no matter of the document.
    found = doctor.Check("ok", Message("doctor.runtime", {"name": "n", "version": "0.32.0", "device": "cpu"}))
    monkeypatch.setattr(doctor, "_runtime", lambda *_: found)
    assert main(["doctor", "--json"]) == 0
    check("doctor", json.loads(capsys.readouterr().out))

"""Results of other tools: read as they give them, beside ours, and given back as they were."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.measured_run import measured_run
from support.schema import check
from support.stored_runs import saved

from playground.cli.main import main
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.domain.record.metrics import side_figures
from playground.report.documents.comparison import compare_document
from playground.report.exports.files import exported
from playground.store import History
from playground.store.foreign.runs import NAMES, documents, runs_of

CASES = Path(__file__).parents[1] / "cases" / "results"
EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text(encoding="utf-8"))
READ = [name for name, expected in EXPECTED.items() if isinstance(expected, list)]


def imported(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    assert main(["import", str(CASES / name)]) == 0
    return capsys.readouterr().out.split()


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main([*arguments]) == 0
    return capsys.readouterr().out


def figure(figures: dict[str, Any], name: str) -> Any:
    return reduce(lambda value, key: value[key], name.split("."), figures)


def test_every_case_is_expected() -> None:
    assert {file.name for file in CASES.iterdir()} == {*EXPECTED, "expected.json"}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_read(name: str, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    expected = EXPECTED[name]
    if isinstance(expected, str):
        assert main(["import", str(CASES / name)]) == 2
        said = capsys.readouterr().err
        assert expected in said
        assert name in said
        assert History(config.db).summaries() == []
        return
    ids = imported(name, capsys)
    assert len(ids) == len(expected)
    for saved_id, result in zip(ids, expected, strict=True):
        run = History(config.db).get(saved_id)
        assert run is not None
        assert run.measurement is not None
        [side] = run.sides
        assert (run.mode, run.status, side.placement, side.label) == (
            "imported",
            "done",
            result["tool"],
            result["label"],
        )
        assert side.settings.target == result.get("model", side.settings.target)
        assert run.created_at.startswith(result.get("created", ""))
        assert side.runtime_version == result.get("version", side.runtime_version)
        assert result.get("profile", {}).items() <= run.measurement.profile.model_dump().items()
        figures = asdict(side_figures(side))
        assert {key: figure(figures, key) for key in result["figures"]} == result["figures"]
        check("compare", json.loads(json.dumps(compare_document(run))))


@pytest.mark.parametrize("name", READ)
def test_the_document_comes_back(name: str, config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    text = (CASES / name).read_text(encoding="utf-8")
    ids = imported(name, capsys)
    parts = [printed(capsys, "history", "export", saved_id, "--format", "original") for saved_id in ids]
    if name.startswith("vllm"):
        assert "\n".join(parts) == text
    else:
        [report] = [json.loads(text)]
        assert [json.loads(part) for part in parts] == [
            {**report, "benchmarks": [b]} for b in report["benchmarks"]
        ]
    # What was imported already is not imported again, by its file or by what it is exported as.
    assert main(["import", str(CASES / name)]) == 2
    assert "already" in capsys.readouterr().err
    assert len(History(config.db).summaries()) == len(ids)


def test_our_own_file_of_it(config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [saved_id] = imported("vllm-0.32.json", capsys)
    file = tmp_path / "run.json"
    file.write_text(printed(capsys, "history", "export", saved_id), encoding="utf-8")
    history = History(config.db)
    assert history.delete(saved_id)
    config.db.unlink()
    assert printed(capsys, "import", str(file)).split() == [saved_id]
    run = history.get(saved_id)
    assert run is not None
    assert exported(run, "json") == file.read_text(encoding="utf-8")
    assert exported(run, "original") == (CASES / "vllm-0.32.json").read_text(encoding="utf-8")


def test_a_file_that_grew(config: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    text = (CASES / "vllm-append.json").read_text(encoding="utf-8")
    file.write_text("\ufeff" + text.splitlines()[0], encoding="utf-8")
    first = printed(capsys, "import", str(file)).split()
    file.write_text(text, encoding="utf-8")
    others = printed(capsys, "import", str(file)).split()
    assert (len(first), len(others)) == (1, 2)
    assert first[0] not in others


def test_beside_ours(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    ours = saved(History(config.db), measured_run())
    [bench] = imported("vllm-0.32.json", capsys)
    [guidellm] = imported("guidellm-0.3.json", capsys)
    beside = json.loads(printed(capsys, "history", "compare", ours.id, bench, guidellm, "--json"))
    check("side_by_side", beside)
    ids = [warning["id"] for warning in beside["warnings"]]
    assert ids.count("beside.imported") == 2
    assert {"reported.vllm_bench", "reported.guidellm", "beside.load"} <= {*ids}
    assert "beside.modes" not in ids
    rows = {row["figure"]: row for row in beside["figures"] if row["labels"][1] == "k = 3"}
    assert rows["tpot_ms"]["values"][1:] == [19.75, 30.0]
    assert all(ratio["interval"] is None for ratio in rows["tpot_ms"]["ratios"])
    assert rows["acceptance_rate"]["values"][2] is None
    assert beside["agreement"] == "unknown"
    # What they do not tell is no difference.
    assert {item["key"] for item in beside["differences"]} >= {
        "mode",
        "A.label",
        "measurement.profile.concurrency",
    }
    assert not any(item["key"].startswith(("workload.", "machine.")) for item in beside["differences"])
    assert "19.8" in printed(capsys, "history", "compare", ours.id, bench)


def test_everywhere_a_run_is_shown(config: Config, capsys: pytest.CaptureFixture[str]) -> None:
    [saved_id] = imported("vllm-0.32.json", capsys)
    [line] = json.loads(printed(capsys, "history", "list", "--json"))
    assert (line["mode"], line["tokens_per_s"], line["verdict"]) == ("imported", [387.5], None)
    assert "388 tokens" in printed(capsys, "history", "list")
    for text in (
        printed(capsys, "history", "show", saved_id),
        printed(capsys, "history", "export", saved_id, "--format", "html"),
    ):
        assert "vllm bench serve" in text
        assert "19.8" in text
        assert "62%" in text
        assert "TTFT ends with the first chunk" in text
    table = printed(capsys, "history", "export", saved_id, "--format", "csv")
    assert f"{saved_id},k = 3,tpot_ms.p99,24.0" in table
    assert "tpot_ms.p90" not in table
    assert main(["compare", "--from-run", saved_id]) == 2
    assert "another tool" in capsys.readouterr().err
    [report] = imported("guidellm-0.3.json", capsys)
    assert main(["history", "export", report, "--format", "vllm-bench"]) == 2
    assert "original" in capsys.readouterr().err


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)
BASES = [json.loads(text) for name in READ for text, _ in documents((CASES / name).read_text(encoding="utf-8"))]


@settings(max_examples=80, derandomize=True, deadline=None)
@given(st.data())
def test_any_value_anywhere(data: st.DataObject) -> None:
    """A document with one value replaced is read, or refused with a sentence."""
    document = json.loads(json.dumps(data.draw(st.sampled_from(BASES))))
    part = document
    while isinstance(part, dict | list) and part:
        key = data.draw(st.sampled_from([*part] if isinstance(part, dict) else range(len(part))))
        if not isinstance(part[key], dict | list) or not part[key] or data.draw(st.integers(0, 3)) == 0:
            part[key] = data.draw(VALUES)
            break
        part = part[key]
    text = json.dumps(document)
    try:
        for run in runs_of([(text, json.loads(text))]):
            assert run.sides[0].placement.startswith(tuple(NAMES.values()))
    except (InvalidInput, ValueError):
        pass

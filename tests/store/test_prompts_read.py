"""What was read of a prompts file stays in the run's record."""

from __future__ import annotations

import json
from pathlib import Path

from support.measured_run import measured_run
from support.schema import check

from playground import prompts
from playground.i18n import say_message
from playground.report.conclusions import conclusions
from playground.report.documents.comparison import compare_document
from playground.store.evidence import prompts_of, prompts_row
from playground.store.rows import run_of, run_row


def test_it_is_stored_said_and_exported(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"prompt": "one"}\n{"prompt": " "}\n{"turns": ["two", "three"]}\n')
    read = prompts.read(tmp_path / "a.jsonl").read
    assert read is not None
    assert prompts_of(prompts_row(read)) == read
    run = measured_run()
    assert "prompts" not in compare_document(run)
    run.prompts = read
    assert run_of(run_row(run), []).prompts == read
    said = [say_message(item.sentence) for item in conclusions(run) if item.kind == "prompts"]
    assert [sentence.split(":")[0] for sentence in said] == ["Skipped", "In part"]
    document = check("compare", json.loads(json.dumps(compare_document(run))))
    assert document["prompts"]["skipped_counts"] == [{"why": "the prompt is blank", "count": 1}]

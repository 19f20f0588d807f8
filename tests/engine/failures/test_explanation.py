"""The re-created logs of tests/cases/explain, each explained."""

from __future__ import annotations

import pytest
from support.explained import CASES, explained

from playground.i18n import LOCALES
from playground.report.documents.explanation import explanation_document


@pytest.mark.parametrize("name", CASES)
def test_a_log(name: str) -> None:
    case = CASES[name]
    document = explanation_document(explained(case["log"]))
    assert document["cause"] == case.get("cause"), document["sentence"]
    assert all(words in document["sentence"] for words in case.get("says", ())), document["sentence"]
    # What the log itself says comes after the colon.
    own_words = document["sentence"].partition(": ")[0]
    assert not any(words in own_words for words in case.get("never", ())), own_words
    for field in ("evidence", "stage"):
        assert field not in case or document[field] == case[field]
    changes = [remedy["change"] for remedy in document["remedies"] if remedy["change"] is not None]
    offered = [[change["key"], "default" if change["value"] is None else change["value"]] for change in changes]
    assert "changes" not in case or offered == case["changes"]
    for locale in LOCALES:
        assert all(
            remedy["sentence"] for remedy in explanation_document(explained(case["log"]), locale)["remedies"]
        )

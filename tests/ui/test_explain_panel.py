"""The place on the page that explains a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from gradio.utils import get_upload_folder
from support.explained import CASES

from playground.domain.errors import InvalidInput
from playground.domain.limits import Limits
from playground.i18n import LOCALES
from playground.ui.compare.explain_panel import card, of_text, of_upload

LOG = CASES["settings/eagle-width"]["log"]


def test_a_pasted_log() -> None:
    for locale in LOCALES:
        shown = card(of_text(LOG, Limits(), locale), locale)
        assert "AssertionError" in shown
        assert "<li>" in shown
        assert "8, 10" in shown


def test_what_a_log_says_is_no_markup() -> None:
    shown = card(of_text("ValueError: <script>alert(1)</script>\n", Limits(), "en"), "en")
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown


def test_a_dropped_log(tmp_path: Path) -> None:
    folder = Path(get_upload_folder())
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "explained.log"
    file.write_text("INFO 03-02 08:00:00 [x.py:1] first\n" * 1000 + LOG)
    shown = card(of_upload(str(file), Limits(upload_bytes=10_000)), "en")
    file.unlink()
    assert "drafter does not go with" in shown
    assert "MiB in the middle of this log were not read" in shown
    other = tmp_path / "other.log"
    other.write_text(LOG)
    with pytest.raises(InvalidInput):
        of_upload(str(other), Limits())


def test_what_is_no_log() -> None:
    with pytest.raises(InvalidInput):
        of_text("", Limits(), "en")

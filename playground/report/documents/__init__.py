"""What the command line prints with --json and the page exports: plain dictionaries of a published shape."""

from __future__ import annotations

from .answers import outputs_document
from .comparison import compare_document
from .explanation import explanation_document
from .others import load_document, summary_document
from .parts import SCHEMA_VERSION, json_text
from .paste import paste_document
from .preflight import preflight_document
from .prompts import first_texts, prompts_document
from .side_by_side import side_by_side_document

__all__ = [
    "SCHEMA_VERSION",
    "compare_document",
    "explanation_document",
    "first_texts",
    "json_text",
    "load_document",
    "outputs_document",
    "paste_document",
    "preflight_document",
    "prompts_document",
    "side_by_side_document",
    "summary_document",
]

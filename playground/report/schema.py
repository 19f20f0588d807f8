"""The JSON Schema of all documents, made of their types. `python -m playground.report.schema` writes schema.json.

A test compares the written file with what the types say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from typing_extensions import TypedDict

from playground.domain.stats.expenses import EXPENSES

from .documents.comparison import CompareDocument
from .documents.explanation import ExplanationDocument
from .documents.others import ComparePlanDocument, DoctorDocument, LoadDocument
from .documents.paste import PasteDocument
from .documents.preflight import PreflightDocument
from .documents.prompts import PromptsDocument
from .documents.side_by_side import SideBySideDocument
from .documents.summary import HistoryListDocument
from .documents.sweep import SweepDocument, SweepPlanDocument
from .documents.trend import TrendDocument
from .figures import DISTRIBUTIONS, SINGLE_VALUES

FILE = Path(__file__).with_name("schema.json")
DOCUMENTS: dict[str, Any] = {
    "compare": CompareDocument,
    "compare_plan": ComparePlanDocument,
    "history_list": HistoryListDocument,
    "side_by_side": SideBySideDocument,
    "trend": TrendDocument,
    "doctor": DoctorDocument,
    "load": LoadDocument,
    "sweep": SweepDocument,
    "sweep_plan": SweepPlanDocument,
    "preflight": PreflightDocument,
    "paste": PasteDocument,
    "explanation": ExplanationDocument,
    "prompts": PromptsDocument,
}
DESCRIPTION = (
    "One of several documents; each is also addressed by its name under $defs. null means unknown, never 0. "
    "Figures carry their unit in their name."
)
WIDTH = 115
SNAKE = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Fields that are absent in documents that are older than the field.
ADDED_LATER: dict[str, Sequence[str]] = {"Measurement": ["check_accuracy"], "SideFigures": EXPENSES}


class _Generator(GenerateJsonSchema):
    """Unknown keys are forbidden, and titles and defaults left out. Models are dumped without fields that are
    None: such a field may be absent."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        return _closed(super().typed_dict_schema(schema))

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _closed(super().dataclass_schema(schema))

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _closed(super().model_schema(schema))

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        described = super().dict_schema(schema)
        return {**described, "additionalProperties": False} if "patternProperties" in described else described

    def model_field_schema(self, schema: core_schema.ModelField) -> JsonSchemaValue:
        nullable = _nullable(schema)
        return self.generate_inner(schema["schema"] if nullable is None else nullable["schema"])

    def field_is_required(
        self,
        field: core_schema.ModelField | core_schema.DataclassField | core_schema.TypedDictField,
        total: bool,
    ) -> bool:
        if field["type"] == "typed-dict-field":
            return bool(field.get("required", total))
        return field["type"] == "dataclass-field" or _nullable(field) is None


def _nullable(field: core_schema.ModelField) -> Any:
    """The schema of the field's values with None, if None is one of them."""
    inner: Any = field["schema"]
    while inner["type"] == "default":
        inner = inner["schema"]
    return inner if inner["type"] == "nullable" else None


def _closed(schema: JsonSchemaValue) -> JsonSchemaValue:
    schema.pop("title", None)
    return {**schema, "additionalProperties": False} if "$ref" not in schema else schema


def document_schema() -> dict[str, Any]:
    """The schema as it is published."""
    every = TypedDict("every", DOCUMENTS)  # type: ignore[misc]
    adapter = TypeAdapter(list[every], config=ConfigDict(use_attribute_docstrings=True))
    described = adapter.json_schema(mode="serialization", schema_generator=_Generator)
    definitions = described["$defs"]
    documents = definitions.pop("every")["properties"]
    definitions |= {name: document for name, document in documents.items() if "$ref" not in document}
    described_figures = definitions["SideFigures"]["properties"]
    for figure in (*DISTRIBUTIONS, *SINGLE_VALUES):
        described_figures[figure.id]["description"] = figure.definition()
    for name, fields in ADDED_LATER.items():
        required = definitions[name]["required"]
        definitions[name]["required"] = [field for field in required if field not in fields]
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "What the playground's command line prints with --json",
        "description": DESCRIPTION,
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in DOCUMENTS],
        "$defs": _renamed(definitions),
    }


def _renamed(definitions: dict[str, Any]) -> dict[str, Any]:
    """Definitions by the names of the documents' parts rather than of classes: CompareDocument is `compare`."""
    names = {name: SNAKE.sub("_", name.removesuffix("Document")).lower() for name in definitions}
    assert len(set(names.values())) == len(names)
    text = json.dumps({names[name]: definition for name, definition in definitions.items()})
    renamed = re.sub(r"(?<=#/\$defs/)\w+", lambda match: names[match[0]], text)
    return dict(sorted(json.loads(renamed).items()))


def schema_text() -> str:
    """The schema as schema.json holds it: a value that fits on one line is written on one."""
    return _lines(document_schema(), 0, "") + "\n"


def _lines(node: Any, depth: int, key: str) -> str:
    line = " " * depth + key + json.dumps(node, ensure_ascii=False)
    if len(line) < WIDTH or not isinstance(node, (dict, list)):
        return line
    if isinstance(node, dict):
        inner = [_lines(value, depth + 1, f"{json.dumps(name)}: ") for name, value in node.items()]
    else:
        inner = [_lines(value, depth + 1, "") for value in node]
    first, last = ("{", "}") if isinstance(node, dict) else ("[", "]")
    return " " * depth + key + first + "\n" + ",\n".join(inner) + "\n" + " " * depth + last


if __name__ == "__main__":
    FILE.write_text(schema_text(), encoding="utf-8")

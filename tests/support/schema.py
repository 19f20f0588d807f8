"""Documents against playground/report/schema.json."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator

from support.paths import ROOT

SCHEMA = json.loads((ROOT / "playground" / "report" / "schema.json").read_text(encoding="utf-8"))


def check(name: str, document: Any) -> Any:
    """As a reader of the printed text sees it: after a round trip through JSON."""
    read = json.loads(json.dumps(document))
    one = {"$schema": SCHEMA["$schema"], "$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}
    Draft202012Validator(one).validate(read)
    return read

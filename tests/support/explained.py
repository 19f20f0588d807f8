"""The logs of tests/cases/explain, by "FILE/NAME", and what is said of a log."""

from __future__ import annotations

import io
import tomllib
from typing import Any

from playground.engine.failures.explanation import Explanation, explain

from .paths import ROOT

FOLDER = ROOT / "tests" / "cases" / "explain"
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}/{name}": case
    for path in sorted(FOLDER.glob("*.toml"))
    for name, case in tomllib.loads(path.read_text(encoding="utf-8")).items()
}


def explained(log: str | bytes, most_bytes: int = 1_000_000) -> Explanation:
    return explain(io.BytesIO(log.encode() if isinstance(log, str) else log), "e.log", most_bytes)

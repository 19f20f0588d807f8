"""The logs of tests/cases/explain, by "FILE/NAME"."""

from __future__ import annotations

import tomllib
from typing import Any

from .paths import ROOT

FOLDER = ROOT / "tests" / "cases" / "explain"
CASES: dict[str, dict[str, Any]] = {
    f"{path.stem}/{name}": case
    for path in sorted(FOLDER.glob("*.toml"))
    for name, case in tomllib.loads(path.read_text(encoding="utf-8")).items()
}

"""Where things are."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
# For processes that tests start: they find both the playground and the fake server.
CHILD_PATH = f"{ROOT}{os.pathsep}{ROOT / 'tests'}"

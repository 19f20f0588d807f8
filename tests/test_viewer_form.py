"""The page where neither vLLM nor torch is installed: it starts, says so, and plays recordings."""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
from support.paths import ROOT

from benchmarks.common import free_port, served
from playground.i18n import say
from playground.report import recordings

# Distributions whose module has another name.
MODULES = {"PyYAML": "yaml", "nvidia-ml-py": "pynvml", "sqlite-utils": "sqlite_utils"}
ENGINE_ONLY = ["vllm", "torch", "transformers", "accelerate", "gguf", "optuna", "pyarrow"]
START = f"""
import runpy, sys
sys.modules.update(dict.fromkeys({ENGINE_ONLY}))
runpy.run_path("app.py", run_name="__main__")
"""


def test_the_page_starts_and_plays_without_vllm(tmp_path: Path) -> None:
    port = free_port()
    variables = {"DB": "history.db", "STATE": "state", "MODELS": "models"}
    places = {f"PLAYGROUND_{name}": str(tmp_path / file) for name, file in variables.items()}
    environment = {**os.environ, **places, "PLAYGROUND_PORT": str(port)}
    url = f"http://127.0.0.1:{port}"
    with served([sys.executable, "-c", START], environment, port):
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        assert say("runtime.watch_only") in httpx.get(f"{url}/config").text
        for name in recordings.names():
            played = httpx.get(f"{url}/live/replay/recording/{name}", timeout=60).json()
            assert "problem" not in played


def test_requirements_name_modules_that_are_there() -> None:
    """And none that only engines need."""
    lines = (ROOT / "requirements-viewer.txt").read_text(encoding="utf-8").splitlines()
    names = [match[1] for line in lines if (match := re.match(r"([\w-]+)==", line))]
    assert all(find_spec(MODULES.get(name, name)) for name in names)
    assert not set(names) & set(ENGINE_ONLY)

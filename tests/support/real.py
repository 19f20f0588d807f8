"""What the tests against real engines share."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil

from playground.config import Config
from playground.domain.spec.case import Side
from playground.domain.spec.settings import EngineSettings
from playground.domain.spec.speculation import DraftModel
from playground.domain.spec.workload import Workload
from playground.models import fetch, folders
from playground.presets import Preset
from playground.runs.comparison import Comparison
from playground.runs.host import Host

ROOT = Path(__file__).parents[2]

DRAFT_K = 3


async def embedded_model() -> Path:
    """The embedded model in this user's own cache, fetched and converted for real the first time."""
    return await fetch.ensure(
        Config(), folders.EMBEDDED, Path(sys.executable), lambda step: print(step, flush=True)
    )


@asynccontextmanager
async def real_host() -> AsyncIterator[Host]:
    """A host with the embedded model. Sockets need a short path. Afterwards no process of it may be left."""
    others = {*descendants(psutil.Process().pid)}
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    model = await embedded_model()
    made = Host(Config(db=folder / "history.db", models=model.parent, state=folder / "state"))
    made.open()
    yield made
    started = [process for process in descendants(psutil.Process().pid) if process not in others]
    await made.close()
    assert not survivors(started, within_s=30)
    shutil.rmtree(folder)


async def raced(host: Host, sides: tuple[Side, ...], workload: Workload) -> Comparison:
    comparison = host.comparison(sides, workload)
    await host.start(comparison, "test")
    await until(lambda: comparison.finished, within_s=600)
    return comparison


def with_speculation(preset: Preset, model: str | Path) -> tuple[Side, ...]:
    """The preset's first side, and beside it the same with a draft model."""
    off = preset.sides[0]
    speculation = DraftModel(model=str(model), num_speculative_tokens=DRAFT_K)
    drafted = off.engine.model_copy(update={"speculation": speculation})
    return off, Side(label="draft", engine=EngineSettings.model_validate(drafted.model_dump()))


def shortened(preset: Preset, tokens: int = 40) -> Workload:
    """Enough tokens for an acceptance rate: with a draft model each takes two forward passes."""
    sampling = preset.workload.sampling.model_copy(update={"max_tokens": tokens})
    return preset.workload.model_copy(update={"sampling": sampling})


async def embedded_gguf(work: Path) -> Path:
    """The embedded model as a GGUF file in `work`; what was downloaded for it stays in this user's cache."""
    return await fetch.embedded_gguf(Config(), work, lambda step: print(step, flush=True))


def shuffled_copy(source: Path, destination: Path) -> Path:
    """The model with each weight matrix's rows in another order: a draft as poor as can be, of the right shape."""
    script = (
        "import sys, torch, safetensors.torch as s\n"
        "torch.manual_seed(0)\n"
        "weights = s.load_file(sys.argv[1])\n"
        "mixed = lambda w: w[torch.randperm(w.shape[0])].contiguous() if w.dim() > 1 else w\n"
        "shuffled = {name: mixed(w) for name, w in weights.items()}\n"
        "s.save_file(shuffled, sys.argv[2], metadata={'format': 'pt'})\n"
    )
    destination.mkdir()
    for file in source.iterdir():
        if file.suffix != ".safetensors":
            (destination / file.name).write_bytes(file.read_bytes())
    weights = [str(folder / "model.safetensors") for folder in (source, destination)]
    subprocess.run([sys.executable, "-c", script, *weights], check=True, timeout=120)
    return destination


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


def private_bytes(process: psutil.Process) -> int:
    """Resident memory that is no file's."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) * 1024


def survivors(processes: list[psutil.Process], within_s: float) -> list[psutil.Process]:
    """Those still running after that time; returns as soon as all are gone."""
    _, alive = psutil.wait_procs(processes, timeout=within_s)
    return [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


async def until(condition: Callable[[], bool], within_s: float) -> None:
    """Fails if the condition has not come true by then."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        await asyncio.sleep(0.05)

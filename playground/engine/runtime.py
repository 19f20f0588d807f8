"""A runtime: a Python interpreter that has vLLM, probed for its version, its device and its flags; or another
engine."""

from __future__ import annotations

import hashlib
import json
import logging
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from playground import private_files
from playground.config import Config
from playground.domain.errors import InvalidInput, WorkFailed
from playground.engine.kinds.kind import Kind
from playground.engine.kinds.program import Program
from playground.engine.kinds.table import kinds
from playground.processes import ended_by_signal, quiet_environment, run_json

logger = logging.getLogger(__name__)

PROBE = Path(__file__).with_name("probe.py")
DEFAULT = "default"


@dataclass(frozen=True)
class Runtime:
    """One runtime as probed. `device` is "cpu" or "cuda"; `openmp` is a library to preload on a CPU.

    `heterogeneous_vocab`: it can draft with another tokenizer; `arctic_inference`: it can draft by suffixes;
    `schedules`: it can choose k by the size of the batch;
    `bytecode`: its modules were compiled to bytecode when they were installed;
    `kind`: what it is, if not vLLM, and `program`: how it is started.
    """

    name: str
    python: Path
    version: str
    device: str
    entry_point: str
    openmp: Path | None
    flags: frozenset[str]
    heterogeneous_vocab: bool = False
    arctic_inference: bool = False
    schedules: bool = False
    bytecode: bool = True
    # Flag -> all that it can be set to, where its parser says so.
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    # Flag -> the name of what it sets, where that is not the flag's own; the names that take several values.
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    lists: frozenset[str] = frozenset()
    kind: Kind | None = None
    program: Program | None = None

    def knows(self, flag: str) -> bool:
        return flag in self.flags

    def name_of(self, flag: str) -> str:
        """What the flag sets: `--no-x`, `--x` and a short `-x` set the same."""
        return self.names.get(flag) or flag.lstrip("-").replace("-", "_").removeprefix("no_")


def names(config: Config) -> list[str]:
    """All runtimes, the default first, which the configuration may map to another interpreter; then the other
    engines that are on this host."""
    others = [name for name, kind in kinds(config).items() if kind.find() is not None]
    return list(dict.fromkeys([DEFAULT, *config.runtimes, *others]))


def has_vllm(config: Config) -> bool:
    """Whether the default runtime can be asked for its vLLM: without it, this host plays and attaches, and starts
    nothing."""
    return DEFAULT in config.runtimes or find_spec("vllm") is not None


def check_name(config: Config, name: str) -> None:
    """Raises InvalidInput for a runtime that this host does not have."""
    if name in config.runtimes or name not in kinds(config):
        interpreter(config, name)
    else:
        _program(kinds(config)[name])


def _program(kind: Kind) -> Program:
    program = kind.find()
    if program is None:
        raise InvalidInput("kind.absent", engine=kind.title, brings=kind.brings, key="runtime")
    return program


def interpreter(config: Config, name: str) -> Path:
    """The runtime's interpreter. Raises InvalidInput for an unknown name."""
    if name == DEFAULT and DEFAULT not in config.runtimes:
        return Path(sys.executable)
    if name not in config.runtimes:
        raise InvalidInput("runtime.unknown", name=name, known=", ".join(names(config)))
    return config.runtimes[name]


def probe(config: Config, name: str = DEFAULT) -> Runtime:
    """Ask the runtime. Its flags take an import of vLLM the first time and are cached by interpreter and version.

    Blocking (a fraction of a second when cached). Raises WorkFailed if there is no usable vLLM, InvalidInput if
    there is no such runtime.
    """
    if name not in config.runtimes and (kind := kinds(config).get(name)):
        program = _program(kind)
        python = Path(sys.executable)
        return Runtime(
            name, python, program.version, program.device, "", None, frozenset(), kind=kind, program=program
        )
    python = interpreter(config, name)
    identity = _ask(python, "identity", timeout_s=60)
    if not identity.get("version") or not identity.get("entry_point"):
        raise WorkFailed("runtime.no_vllm", name=name, python=str(python))
    parser = _parser(config, python, str(identity["version"]))
    known = {str(flag): tuple(map(str, choices or ())) for flag, choices in parser["flags"].items()}
    return Runtime(
        name=name,
        python=python,
        version=str(identity["version"]),
        device=str(identity["device"]),
        entry_point=str(identity["entry_point"]),
        openmp=Path(str(identity["openmp"])) if identity["openmp"] else None,
        heterogeneous_vocab=bool(identity["heterogeneous_vocab"]),
        arctic_inference=bool(identity["arctic_inference"]),
        schedules=bool(identity["schedules"]),
        bytecode=bool(identity["bytecode"]),
        flags=frozenset(known),
        choices={flag: choices for flag, choices in known.items() if choices},
        names=parser.get("names", {}),
        lists=frozenset(parser.get("lists", ())),
    )


def _parser(config: Config, python: Path, version: str) -> dict[str, Any]:
    """What the probe tells of the server's own parser, from the state folder if it was asked before."""
    # The probe's own text is part of the key: a newer one may read more.
    key = f"{python}\0{version}\0{PROBE.read_text(encoding='utf-8')}"
    private_files.private_folder(config.state, "PLAYGROUND_STATE")
    cached = config.state / "runtimes" / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"
    try:
        answer: dict[str, Any] = json.loads(cached.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        answer = _ask(python, "flags", timeout_s=300)
        try:
            private_files.make_folder(cached.parent)
            private_files.write_whole(cached, json.dumps(answer))
        except OSError as error:
            logger.warning("the runtime is asked again next time: %s", error)
    return answer


def _ask(python: Path, question: str, timeout_s: float) -> dict[str, object]:
    try:
        answer = run_json(
            [str(python), str(PROBE), question], environment=quiet_environment(), timeout_s=timeout_s
        )
    except (OSError, subprocess.SubprocessError, json.JSONDecodeError) as error:
        detail = ended_by_signal(getattr(error, "returncode", 1)) or _last_line(error)
        raise WorkFailed("runtime.broken", python=str(python), detail=detail) from error
    assert isinstance(answer, dict)
    return answer


def _last_line(error: Exception) -> str:
    return str(getattr(error, "stderr", None) or error).strip().rsplit("\n", 1)[-1]

"""Engine settings -> what starts the same engine elsewhere: a command, a script, containers.

They contain the settings alone: nothing that the playground adds for its own machine (cores, a share of a card,
its socket).
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import yaml

from playground.config import Config
from playground.domain.spec.settings import EngineSettings
from playground.domain.vllm_cli.python_call import SERVED_ONLY
from playground.engine.command import arguments
from playground.engine.kinds.kind import Kind, Launch
from playground.engine.kinds.program import Program
from playground.engine.kinds.table import kinds
from playground.models import folders, gguf

Snippet = Literal["serve", "python", "docker", "kubernetes", "compose"]

PORT = 8000
# A model may have to be downloaded, and kernels compiled, before the engine answers.
STARTS_WITHIN_S = 3600
PROBE_S = 10
CACHE = ".cache/huggingface"
RELEASE = re.compile(r"\d+\.\d+\.\d+(\.post\d+|rc\d+)?")


def snippets(
    config: Config, settings: EngineSettings, version: str | None, device: str | None
) -> dict[Snippet, str]:
    """The same engine in five forms. `version` and `device` are the runtime's; None: the newest, on a GPU. Of an
    engine that is not vLLM, its command alone."""
    if (kind := kinds(config).get(settings.runtime)) is not None and settings.runtime not in config.runtimes:
        return {"serve": _other(config, kind, settings, device)}
    target = folders.portable(config, settings.target)
    draft = settings.draft and folders.portable(config, settings.draft)
    options = arguments(settings, settings.knobs.options, draft)
    words = [target, *(word for option in options for word in option)]
    container = _Container(settings, words, [name for name in (target, draft) if name], version, device)
    return {
        "serve": _lines([*_assigned(settings), "vllm", "serve", shlex.quote(target)], words[1:]),
        "python": _python(settings, target, draft),
        "docker": container.docker(),
        "kubernetes": container.kubernetes(),
        "compose": container.compose(),
    }


def _other(config: Config, kind: Kind, settings: EngineSettings, device: str | None) -> str:
    def portable(name: str) -> str:
        return str(gguf.local_file(config, name) or name) if kind.gguf else folders.portable(config, name)

    launch = Launch(
        settings,
        Program(tuple(shlex.split(kind.typed)), "", device or "cuda"),
        portable(settings.target),
        settings.draft and portable(settings.draft),
        PORT,
        cores=os.cpu_count() or 1,
    )
    first, *rest = kind.argv(launch)
    return _lines([first], rest)


def _lines(beginning: Sequence[str], words: Sequence[str]) -> str:
    """A shell command with each flag on a separate line."""
    text = " ".join(beginning)
    for word in words:
        text += (" \\\n  " if word.startswith("--") else " ") + shlex.quote(word)
    return text


def _assigned(settings: EngineSettings) -> list[str]:
    """The variables that vLLM reads, as NAME=VALUE."""
    return [f"{name}={value}" for name, value in settings.knobs.variables.items()]


def _python(settings: EngineSettings, target: str, draft: str | None) -> str:
    arguments: dict[str, object] = {"model": target, **settings.knobs.options}
    if settings.speculates:
        arguments["speculative_config"] = settings.speculation.config(draft)
    if settings.trust_remote_code:
        arguments["trust_remote_code"] = True
    served = list(settings.extra_flags)
    if (settings.knobs.data_parallel_size or 1) > 1:
        # LLM() refuses more than one replica in one process.
        served += ["--data-parallel-size", str(arguments.pop("data_parallel_size"))]
    keywords = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    variables = [f'os.environ["{name}"] = "{value}"' for name, value in settings.knobs.variables.items()]
    return "\n".join(
        [
            *(["import os", *variables] if variables else []),
            "from vllm import LLM",
            # vLLM starts processes that read this file again.
            'if __name__ == "__main__":',
            f"    llm = LLM({keywords})",
            '    print(llm.generate("Once upon a time")[0].outputs[0].text)',
            # As JSON it stays one line, whatever was typed.
            *([SERVED_ONLY + json.dumps(shlex.join(served))] if served else []),
        ]
    )


class _Container:
    """The engine in vLLM's own image: its entry point is `vllm serve`, so `words` are all it needs."""

    def __init__(
        self,
        settings: EngineSettings,
        words: Sequence[str],
        names: Sequence[str],
        version: str | None,
        device: str | None,
    ) -> None:
        release = RELEASE.match(version or "")
        image = "vllm/vllm-openai-cpu" if device == "cpu" else "vllm/vllm-openai"
        self._image = f"{image}:v{release[0]}" if release else f"{image}:latest"
        self._gpus = 0 if device == "cpu" else settings.gpus
        self._words = words
        self._variables = _assigned(settings)
        self._name = _dns_label(words[0])
        self._folders = sorted({name for name in names if name.startswith("/")})
        self._from_hub = any(not name.startswith("/") for name in names)

    def docker(self) -> str:
        flags = [f"--gpus {self._gpus}"] if self._gpus else []
        # Workers of one engine talk through shared memory.
        flags += [f"--publish {PORT}:{PORT}", "--ipc host"]
        if self._from_hub:
            flags += ["--env HF_TOKEN", f'--volume "$HOME/{CACHE}:/root/{CACHE}"']
        flags += [f"--env {variable}" for variable in self._variables]
        flags += [f"--mount {shlex.quote(_bind_mount(folder))}" for folder in self._folders]
        beginning = " \\\n  ".join(["docker run --rm", *flags, f"{self._image} {shlex.quote(self._words[0])}"])
        return _lines([beginning], self._words[1:])

    def compose(self) -> str:
        service: dict[str, Any] = {
            "image": self._image,
            "command": self._escaped(),
            "ports": [_Quoted(f"{PORT}:{PORT}")],
            "ipc": "host",
        }
        volumes: list[object] = []
        if environment := [*(["HF_TOKEN"] if self._from_hub else []), *self._variables]:
            service["environment"] = environment
        if self._from_hub:
            volumes.append(_Quoted(f"~/{CACHE}:/root/{CACHE}"))
        for folder in self._folders:
            path = _Quoted(_escape(folder))
            volumes.append({"type": "bind", "source": path, "target": path, "read_only": True})
        service["volumes"] = volumes
        if self._gpus:
            card = {"driver": "nvidia", "count": self._gpus, "capabilities": ["gpu"]}
            service["deploy"] = {"resources": {"reservations": {"devices": [card]}}}
        return _yaml({"services": {"vllm": service}})

    def kubernetes(self) -> str:
        labels = {"app": self._name}
        health = {"httpGet": {"path": "/health", "port": PORT}, "periodSeconds": PROBE_S}
        container: dict[str, Any] = {
            "name": "vllm",
            "image": self._image,
            "args": self._escaped(),
            "ports": [{"containerPort": PORT}],
            "startupProbe": {**health, "failureThreshold": STARTS_WITHIN_S // PROBE_S},
            "readinessProbe": health,
            "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}],
        }
        if self._from_hub:
            token = {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}
            container["env"] = [{"name": "HF_TOKEN", "valueFrom": token}]
        for name, _, value in (variable.partition("=") for variable in self._variables):
            container.setdefault("env", []).append({"name": name, "value": _Quoted(value)})
        if self._gpus:
            container["resources"] = {"limits": {"nvidia.com/gpu": self._gpus}}
        volumes: list[dict[str, Any]] = [{"name": "shm", "emptyDir": {"medium": "Memory"}}]
        for number, folder in enumerate(self._folders):
            name = f"model-{number}"
            volumes.append({"name": name, "hostPath": {"path": _Quoted(folder), "type": "Directory"}})
            container["volumeMounts"].append({"name": name, "mountPath": _Quoted(folder), "readOnly": True})
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "volumes": volumes}}
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
        metadata = {"name": self._name, "labels": labels}
        return _yaml({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})

    def _escaped(self) -> list[_Quoted]:
        return [_Quoted(_escape(word)) for word in self._words]


def _bind_mount(folder: str) -> str:
    """The bind mount as one field of CSV, as Docker reads it; --volume would split the path at a colon."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(["type=bind", f"source={folder}", f"target={folder}", "readonly"])
    return line.getvalue()


def _escape(text: str) -> str:
    """Escape dollar signs: Compose and Kubernetes both fill in variables, and read $$ as a dollar sign."""
    return text.replace("$", "$$")


def _dns_label(model: str) -> str:
    """A name that Kubernetes takes: at most 63 lower-case letters, digits and hyphens, a letter first."""
    words = re.sub(r"[^a-z0-9]+", "-", model.rstrip("/").rsplit("/", 1)[-1].lower())
    return f"vllm-{words}"[:63].strip("-")


class _Quoted(str):
    """Text that every reader of YAML takes for text: some take 1e5, on or 8000:8000 for something else."""


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]
    def ignore_aliases(self, data: object) -> bool:
        """Repeat a value rather than refer to it, since people edit the file."""
        return True


_Dumper.add_representer(
    _Quoted, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')
)


def _yaml(document: Mapping[str, Any]) -> str:
    text: str = yaml.dump(dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return text.rstrip("\n")

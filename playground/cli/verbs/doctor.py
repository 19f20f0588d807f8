"""The command line's `doctor`: what this machine can do, and what to fix."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass
from typing import Literal

from playground.config import Config
from playground.domain.errors import PlaygroundError, WorkFailed
from playground.domain.message import Message
from playground.domain.spec.engines import versioned
from playground.engine import devices, runtime
from playground.i18n import say, say_message
from playground.models import folders
from playground.report.documents.others import CheckDocument

from ..streams import print_json

ENOUGH_DISK_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class Check:
    """One fact: `ok`, `note` (works, with a limitation) or `broken`."""

    state: Literal["ok", "note", "broken"]
    finding: Message

    def as_document(self) -> CheckDocument:
        return {"state": self.state, "id": self.finding.message_id, "message": say_message(self.finding)}


def add_to(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the verb and its arguments."""
    parser = verbs.add_parser("doctor", help=say("cli.doctor"))
    parser.add_argument("--json", action="store_true", help=say("cli.json"))
    parser.set_defaults(verb=run)


def run(arguments: argparse.Namespace) -> int:
    checks = examine(Config.from_environment())
    if arguments.json:
        print_json([check.as_document() for check in checks])
    else:
        for check in checks:
            print(f"[{say(f'doctor.{check.state}')}] {say_message(check.finding)}")
    if any(check.state == "broken" for check in checks):
        raise WorkFailed("doctor.not_ready")
    return 0


def examine(config: Config) -> list[Check]:
    """Check the processor, GPUs, every runtime, the embedded model and the disk. Starts no engine."""
    host = devices.machine()
    gib = host.memory_bytes / 1024**3
    checks = [Check("ok", Message("doctor.cpu", {"cpu": host.cpu, "cores": len(host.cores), "gib": gib}))]
    checks += [
        Check(
            "ok",
            Message(
                "doctor.gpu",
                {"index": g.index, "name": g.name, "gib": g.total_bytes / 1024**3, "abilities": g.abilities},
            ),
        )
        for g in host.gpus
    ]
    if not host.gpus:
        checks.append(Check("note", Message("doctor.no_gpu")))
    if len(host.cores) < 3 and not host.gpus:
        checks.append(Check("note", Message("doctor.few_cores", {"cores": len(host.cores)})))
    checks += [_runtime(config, name, bool(host.gpus)) for name in runtime.names(config)]
    folder = folders.local_folder(config, folders.EMBEDDED)
    checks.append(
        Check("ok", Message("doctor.model", {"folder": folder}))
        if folder
        else Check("note", Message("doctor.no_model", {"folder": config.models}))
    )
    checks.append(_disk(config))
    return checks


def _runtime(config: Config, name: str, has_gpu: bool) -> Check:
    try:
        probed = runtime.probe(config, name)
    except PlaygroundError as error:
        return Check("broken", error.as_message())
    params: dict[str, object] = {
        "name": name,
        "engine": versioned(name, probed.version),
        "device": probed.device,
    }
    if probed.kind is not None:
        return Check("ok", Message("doctor.runtime", params))
    if probed.device == "cuda" and not has_gpu:
        return Check("broken", Message("doctor.runtime_without_gpu", params))
    if probed.device == "cpu" and has_gpu:
        return Check("note", Message("doctor.runtime_ignores_gpu", params))
    return Check("ok", Message("doctor.runtime", params))


def _disk(config: Config) -> Check:
    folder = next(path for path in (config.models, *config.models.parents) if path.exists())
    free = shutil.disk_usage(folder).free
    state: Literal["ok", "note"] = "ok" if free > ENOUGH_DISK_BYTES else "note"
    return Check(state, Message("doctor.disk", {"folder": folder, "gib": free / 1024**3}))

"""A pasted command line or Python call -> settings, with a note on each thing translated or left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.validation import typo_of, validate

from . import owned, python_call
from .old_names import OLD_NAMES, adopt, complete, modernised
from .words import bare, is_option, options, split, takes_values, words

# The place that errors name.
WHERE = Message("paste.where")
# A longer text is no command line.
LONGEST = 20_000
MODULES = ("vllm.entrypoints", "vllm.scripts")
PREFIXES = ("$", "env", "sudo", "exec", "nohup", "time", "uv", "run", "export")
SHORT = {"tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size"}
SHORT |= {"q": "quantization", "sc": "speculative_config", "device_memory_utilization": "gpu_memory_utilization"}
# Short options for fields of --speculative-config.
SPECULATION = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
# The names of options that have a field in the settings.
KNOWN = (*Knobs.model_fields, *SPECULATION, "speculative_config", "trust_remote_code")
# vLLM reads 32k as 32000 and 32K as 32768, for these.
HUMAN = ("max_model_len", "max_num_batched_tokens", "kv_cache_memory_bytes")
FACTORS = {**{unit: 1000 ** (i + 1) for i, unit in enumerate("kmgt")}}
FACTORS |= {unit.upper(): 1024 ** (i + 1) for i, unit in enumerate("kmgt")}


@dataclass(frozen=True)
class PastedSettings:
    """The settings that were understood, and notes on them."""

    settings: EngineSettings
    notes: tuple[Message, ...]


def read(text: str) -> PastedSettings:
    """`vllm serve ...`, `python -m vllm.entrypoints... ...`, `docker run ... vllm-openai ...` or `LLM(...)`.

    Raises InvalidInput for what can't be understood or used. The text is never executed.
    """
    if not text.strip():
        raise InvalidInput("paste.empty")
    if len(text) > LONGEST:
        raise InvalidInput("paste.too_long", limit=LONGEST)
    notes: list[Message] = []
    pairs = python_call.arguments(text) if python_call.is_python(text) else _of_command(text, notes)
    collected = _Collected()
    for name, value in pairs:
        collected.take(name, value)
    return collected.finished(notes)


def _of_command(text: str, notes: list[Message]) -> list[tuple[str, Any]]:
    """The options after the program's name; the model of `vllm serve MODEL` is one of them."""
    arguments = _after_program(words(text), notes)
    model: list[tuple[str, Any]] = []
    if arguments and not is_option(arguments[0]):
        model = [("model", arguments.pop(0))]
    pairs = []
    for option in options(arguments):
        if not is_option(option[0]):
            raise InvalidInput("paste.stray", word=option[0][:60])
        pairs.append(split(option))
    return model + pairs


def _after_program(arguments: list[str], notes: list[Message]) -> list[str]:
    at, environment = 0, []
    while at < len(arguments) and (arguments[at] in PREFIXES or re.match(r"[A-Za-z_]\w*=", arguments[at])):
        environment += [arguments[at].partition("=")[0]] if "=" in arguments[at] else []
        at += 1
    if environment:
        notes.append(Message("paste.environment", {"names": ", ".join(environment)}))
    rest = arguments[at:]
    if rest and rest[0] in ("docker", "podman"):
        image = next(
            (i for i, word in enumerate(rest) if "vllm" in word and ":" in word and "=" not in word), None
        )
        if image is None:
            raise InvalidInput("paste.no_image")
        notes.append(Message("paste.container", {"name": rest[0]}))
        return rest[image + 1 :]
    program = rest[0].rpartition("/")[2] if rest else ""
    if program == "vllm" and rest[1:2] == ["serve"]:
        return rest[2:]
    if (
        re.fullmatch(r"python[\d.]*", program)
        and rest[1:2] == ["-m"]
        and rest[2:3]
        and rest[2].startswith(MODULES)
    ):
        return rest[4:] if rest[3:4] == ["serve"] else rest[3:]
    if rest and is_option(rest[0]) and at == 0:
        return rest
    raise InvalidInput("paste.no_program", word=" ".join(rest[:2])[:60])


class _Collected:
    """Collects options until they become settings."""

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {"knobs": {}, "speculation": {}, "extra_flags": []}
        self.notes: list[Message] = []
        self.old: list[tuple[str, Any]] = []

    def take(self, name: str, value: Any) -> None:
        name, _, inner = name.partition(".")
        name = SHORT.get(bare(name), bare(name))
        if name in SPECULATION:
            name, inner = "speculative_config", SPECULATION[name]
        negated = name.removeprefix("no_") if name.startswith("no_") and value is True else None
        if name == "model" and isinstance(value, str):
            self.settings["target"] = value
        elif name == "speculative_config":
            self._speculation(value, inner)
        elif name == "trust_remote_code" or negated == "trust_remote_code":
            self.settings["trust_remote_code"] = value if negated is None else False
        elif name in Knobs.model_fields:
            self._knob(name, value)
        elif negated in Knobs.model_fields:
            self.settings["knobs"][negated] = False
        elif name in OLD_NAMES and not OLD_NAMES[name].still_in:
            self.old.append((name, value))
        elif {name, negated} & owned.HOST:
            self.notes.append(Message("paste.own", {"name": name}))
        elif name == "config":
            self.notes.append(Message("paste.config_file", {"file": value}))
        else:
            self._extra(name, inner, value)

    def _extra(self, name: str, inner: str, value: Any) -> None:
        """Keep a flag that has no field, with a note if it looks like a typo."""
        if nearest := typo_of(name, KNOWN):
            self.notes.append(Message("paste.typo", {"name": _dashed(name), "nearest": _dashed(nearest)}))
        self.settings["extra_flags"] += _flag(f"{name}.{inner}" if inner else name, value)

    def _knob(self, name: str, value: Any) -> None:
        if value is True and takes_values(f"--{name}"):
            raise InvalidInput("paste.no_value", name=name)
        self.settings["knobs"][name] = _human(name, value)

    def _speculation(self, value: Any, key: str) -> None:
        if key:
            fields: Any = {key: _json(value)}
        elif isinstance(value, list):
            raise InvalidInput("paste.json_quotes", text=" ".join(map(str, value))[:60])
        else:
            fields = value if isinstance(value, dict) else _json(value)
        if fields is None:
            return
        if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
            raise InvalidInput("paste.json", text=str(value)[:60])
        speculation = self.settings["speculation"]
        for name, field in fields.items():
            if name in OLD_NAMES and OLD_NAMES[name].now != f"speculation.{name}":
                self.old.append((name, field))
            else:
                speculation[name] = field

    def finished(self, notes: Iterable[Message]) -> PastedSettings:
        # Last, so that a new name beside its old one is seen.
        for name, value in self.old:
            self.notes += adopt(self.settings, name, value, WHERE)
        speculation = self.settings["speculation"]
        if speculation:
            self.notes += _as_vllm_reads(speculation)
        else:
            del self.settings["speculation"]
        if "target" not in self.settings:
            raise InvalidInput("paste.no_model")
        settings, more = modernised(self.settings, WHERE)
        engine = validate(EngineSettings, settings, where=WHERE)
        return PastedSettings(engine, (*notes, *self.notes, *more))


def _as_vllm_reads(speculation: dict[str, Any]) -> list[Message]:
    """Fill in what vLLM derives itself. Returns notes on that."""
    notes = []
    method = speculation.get("method")
    if isinstance(method, str) and method.endswith("_mtp"):
        speculation["method"] = "mtp"
        notes.append(Message("old.value", {"key": "method", "old": method, "new": "mtp"}))
    elif method == "[ngram]":
        speculation["method"] = "ngram"
    complete(speculation)
    if method is None and "method" in speculation:
        notes.append(Message("paste.method", {"method": speculation["method"]}))
    if isinstance(method := speculation.get("method"), str) and method in SPECULATION_METHODS:
        speculation |= SPECULATION_METHODS[method].as_vllm_reads(speculation)
    if "method" in speculation and "num_speculative_tokens" not in speculation:
        notes.append(Message("paste.tokens"))
    return notes


def _json(value: Any) -> Any:
    """The value, parsed where it is JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _human(name: str, value: Any) -> Any:
    parts = (
        re.fullmatch(r"(\d+(?:\.\d+)?)([kmgtKMGT])", value) if name in HUMAN and isinstance(value, str) else None
    )
    number = float(parts[1]) * FACTORS[parts[2]] if parts else inf
    return int(number) if isfinite(number) else value


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _flag(name: str, value: Any) -> list[str]:
    """The flag and its value as they are typed."""
    dashed = _dashed(name) if "." not in name else name
    if value is True:
        return [f"--{dashed}"]
    if value is False:
        return [f"--no-{dashed}"]
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [f"--{dashed}", *map(str, value)]
    return [f"--{dashed}", json.dumps(value) if isinstance(value, dict) else str(value)]

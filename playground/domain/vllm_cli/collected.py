"""Options -> settings: each in its field, among the extra flags, or left out with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from math import isfinite
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import SPECULATION_METHODS
from playground.domain.validation import typo_of, validate

from . import option_table, owned
from .notes import Notes, shortened
from .old_names import OLD_NAMES, adopt, complete, modernised
from .options import Option, takes_value
from .shell.words import unresolved

# The place that errors name.
WHERE = Message("paste.where")
# Short options for fields of --speculative-config.
SPECULATION = {"spec_method": "method", "spec_model": "model", "spec_tokens": "num_speculative_tokens"}
# The names of options that have a field in the settings.
FIELDS = (*Knobs.model_fields, *SPECULATION, "speculative_config", "trust_remote_code")
# vLLM reads 32k as 32000 and 32K as 32768, for these.
HUMAN = ("max_model_len", "max_num_batched_tokens", "kv_cache_memory_bytes")
FACTORS = {**{unit: 1000 ** (i + 1) for i, unit in enumerate("kmgt")}}
FACTORS |= {unit.upper(): 1024 ** (i + 1) for i, unit in enumerate("kmgt")}


class Collected:
    """Collects options until they become settings."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._settings: dict[str, Any] = {"knobs": {}, "extra_flags": []}
        self._old: list[Option] = []
        # Of --config.
        self._file: str | None = None
        # --speculative-config: the whole of it, by dotted options, and by short ones.
        self._config: Option | None = None
        self._dotted: dict[str, Any] = {}
        self._short: dict[str, Any] = {}

    def take(self, options: Sequence[Option]) -> None:
        """All options of a command, in order; of one that is repeated, vLLM takes the last."""
        last = {(option.name, option.inner): option for option in options}
        for option in options:
            if last[option.name, option.inner] is option or option.inner.endswith("+"):
                self._take(option)
            elif option.name == "model":
                raise InvalidInput("paste.two_models", first=option.value, second=last["model", ""].value)
            elif option.value != last[option.name, option.inner].value:
                self._notes.leave(_shown(option), "paste.repeated")

    def _take(self, option: Option) -> None:
        name, value = option.name, option.value
        if name in owned.HOST and name not in OLD_NAMES:
            self._notes.leave(str(option), "paste.own")
            return
        if option.acted_on is not None:
            raise unresolved(option.acted_on)
        for variable, text in option.resolved:
            self._notes.say("paste.resolved", name=variable, value=shortened(text))
        if name == "speculative_config" or name in SPECULATION:
            self._speculation(option)
        elif name in ("model", "trust_remote_code"):
            self._settings["target" if name == "model" else name] = value
        elif name in Knobs.model_fields:
            self._knob(option)
        elif name in OLD_NAMES and not OLD_NAMES[name].still_in:
            self._old.append(option)
        else:
            self._other(option)

    def _other(self, option: Option) -> None:
        """An option without a field: an extra flag, if the host may set it."""
        why = owned.why_owned(option.name)
        if option.name == "config":
            self._file, why = str(option.value)[:60], Message("paste.config_file")
        if why is not None:
            self._notes.leave(_shown(option), why.message_id, **why.params)
        else:
            self._extra(option)

    def _extra(self, option: Option) -> None:
        """Keep a flag that has no field, as it was typed; with a note if vLLM does not know it."""
        dashed = option.name.replace("_", "-")
        if dashed not in option_table.EVERY and option.name not in OLD_NAMES:
            if nearest := option_table.SHORT.get(dashed) or typo_of(option.name, FIELDS):
                self._notes.say("paste.typo", name=dashed, nearest=nearest.replace("_", "-"))
            else:
                self._notes.say(
                    "paste.unknown", flag=" ".join(option.typed) or dashed, version=option_table.VERSION
                )
        self._settings["extra_flags"] += option.typed or _flag(option.name, option.value)

    def _knob(self, option: Option) -> None:
        name, value = option.name, option.value
        if (value is True and takes_value(name)) or value == []:
            raise InvalidInput("paste.no_value", name=name)
        if value == "None":
            # vLLM's word for its default.
            value = None
        number = _human(name, value)
        if number != value and isinstance(value, str) and "e" in value.lower():
            self._notes.say("paste.exponent", name=name, value=value, number=number)
        self._settings["knobs"][name] = number

    def _speculation(self, option: Option) -> None:
        value = option.value
        if value is True:
            raise InvalidInput("paste.no_value", name=option.name)
        if option.name in SPECULATION:
            key = SPECULATION[option.name]
            self._short[key] = _json(value) if key == "num_speculative_tokens" else value
        elif not option.inner:
            self._config = option
        else:
            *outer, last = option.inner.split(".")
            fields = self._dotted
            for part in outer:
                fields = fields.setdefault(part, {})
                if not isinstance(fields, dict):
                    raise InvalidInput("paste.json", name="--speculative-config", text=option.inner[:60])
            if last.endswith("+"):
                last, value = last[:-1], [*fields.get(last[:-1], ()), *str(value).split(",")]
            fields[last] = _json(value)

    def _speculation_fields(self) -> dict[str, Any]:
        """The fields as vLLM puts them together: dotted options replace a whole one, short ones add to it."""
        fields = self._dotted or (_config(self._config) if self._config else {})
        if self._dotted and self._config:
            self._notes.leave(_shown(self._config), "paste.dotted")
        fields = {name.replace("-", "_"): value for name, value in fields.items()}
        for name, value in self._short.items():
            if name in fields:
                raise InvalidInput("paste.twice", name=name, first=fields[name], second=value)
            fields[name] = value
        for name in [
            name for name in fields if name in OLD_NAMES and OLD_NAMES[name].now != f"speculation.{name}"
        ]:
            self._old.append(Option(name, fields.pop(name)))
        return fields

    def settings(self) -> EngineSettings:
        """What was collected. Raises InvalidInput where a field does not accept its value, and without a model."""
        speculation = self._settings["speculation"] = self._speculation_fields()
        whole = dict(speculation)
        # Last, so that a new name beside its old one is seen.
        for option in self._old:
            for note in adopt(self._settings, option.name, option.value, WHERE):
                if OLD_NAMES[option.name].now is None:
                    self._notes.leave(_shown(option), note.message_id, **note.params)
                else:
                    self._notes.say(note.message_id, **note.params)
        if not speculation:
            del self._settings["speculation"]
        else:
            self._complete(speculation, whole)
        if "target" not in self._settings:
            if self._file is not None:
                raise InvalidInput("paste.model_in_file", file=self._file)
            raise InvalidInput("paste.no_model")
        settings, notes = modernised(self._settings, WHERE)
        for note in notes:
            self._notes.say(note.message_id, **note.params)
        return validate(EngineSettings, settings, where=WHERE)

    def _complete(self, speculation: dict[str, Any], whole: dict[str, Any]) -> None:
        """Fill in what vLLM derives itself. A speculation with a method or a field that has no place here stays
        whole, as one extra flag."""
        _as_vllm_reads(speculation, self._notes)
        reads = speculation.get("method")
        model = SPECULATION_METHODS.get(reads) if isinstance(reads, str) else None
        foreign = sorted(set(speculation) - set(model.model_fields)) if model else []
        typos = [key for key in foreign if model and typo_of(key, model.model_fields)]
        if isinstance(reads, str) and (model is None or (foreign and not typos)):
            self._notes.say(
                "paste.whole_speculation", what=f"method {reads}" if model is None else ", ".join(foreign)
            )
            self._settings["extra_flags"] += ["--speculative-config", json.dumps(whole)]
            del self._settings["speculation"]


def _as_vllm_reads(speculation: dict[str, Any], notes: Notes) -> None:
    method = speculation.get("method")
    if isinstance(method, str) and method.endswith("_mtp"):
        speculation["method"] = "mtp"
        notes.say("old.value", key="method", old=method, new="mtp")
    elif method == "[ngram]":
        speculation["method"] = "ngram"
    complete(speculation)
    if method is None and "method" in speculation:
        notes.say("paste.method", method=speculation["method"])
    if isinstance(method := speculation.get("method"), str) and method in SPECULATION_METHODS:
        speculation |= SPECULATION_METHODS[method].as_vllm_reads(speculation)
    if "method" in speculation and "num_speculative_tokens" not in speculation:
        notes.say("paste.tokens")


def _config(option: Option) -> dict[str, Any]:
    """The fields of a whole --speculative-config."""
    fields = _json(option.value)
    if isinstance(fields, str) and '\\"' in fields:
        # PowerShell passes quotes on only with backslashes before them.
        fields = _json(fields.replace('\\"', '"'))
    if fields is None or option.value == "None":
        return {}
    if not isinstance(fields, dict) or not all(isinstance(name, str) for name in fields):
        if isinstance(option.value, str) and option.value.startswith("{") and not re.search("[\"']", option.value):
            raise InvalidInput("paste.json_quotes", name="--speculative-config", text=option.value[:60])
        raise InvalidInput("paste.json", name="--speculative-config", text=str(option.value)[:60])
    return dict(fields)


def _json(value: Any) -> Any:
    """The value, parsed where it is JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


def _human(name: str, value: Any) -> Any:
    """A size as vLLM reads it: 25.6k, 4K; and whole numbers that are written like 1e5."""
    text = value.strip() if isinstance(value, str) else ""
    number: float | None = None
    if name in HUMAN and (parts := re.fullmatch(r"(\d+(?:\.\d+)?)([kmgtKMGT])", text)):
        # vLLM takes no fraction of a binary unit.
        whole = parts[2].islower() or "." not in parts[1]
        number = float(parts[1]) * FACTORS[parts[2]] if whole else None
    elif "int" in str(Knobs.model_fields[name].annotation) and re.fullmatch(r"\d+(\.\d+)?[eE]\+?\d{1,3}", text):
        number = float(text)
    return int(number) if number is not None and isfinite(number) and number == int(number) else value


def _shown(option: Option) -> str:
    """An option and its value, for a note. A value that may be a secret is left away."""
    if owned.why_owned(option.name) is not None and option.name not in (*FIELDS, "model", "config"):
        return str(option)
    return " ".join(option.typed) if option.typed else f"{option.name} = {option.value!r}"


def _flag(name: str, value: Any) -> list[str]:
    """The flag and its value as they are typed."""
    dashed = name.replace("_", "-")
    if value is True:
        return [f"--{dashed}"]
    if value is False:
        return [f"--no-{dashed}"]
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [f"--{dashed}", *map(str, value)]
    return [f"--{dashed}", json.dumps(value) if isinstance(value, dict) else str(value)]

"""Settings and their values as the page calls them."""

from __future__ import annotations

from playground.domain.spec.change import Value
from playground.domain.spec.difference import METHOD
from playground.domain.spec.engines import TITLES
from playground.domain.spec.settings import Knobs
from playground.i18n import Locale, say, table

# Fields of the speculation that have a separate component; the rest goes through the JSON box.
SPECULATION = {
    "method": "method",
    "model": "draft",
    "num_speculative_tokens": "k",
    "prompt_lookup_min": "lookup_min",
    "prompt_lookup_max": "lookup_max",
}


def field_of(key: str) -> str:
    """The field that shows a dotted key of the settings. All knobs are in `knobs`."""
    group, _, name = key.partition(".")
    return SPECULATION.get(name, "more") if group == "speculation" else group


def name_of(key: str, locale: Locale) -> str:
    """A dotted key of a side's settings in words; vLLM's own name where there are none."""
    group, _, name = key.rpartition(".")
    if name in Knobs.model_fields and group == "knobs":
        return say(f"knob.{name}", locale)
    field = field_of(key) if group == "speculation" else name
    return say(f"ui.{field}", locale) if f"ui.{field}" in table() and field != "more" else name


def with_vllm_name(key: str, locale: Locale) -> str:
    """The same, with vLLM's own name where the two differ: as errors call it."""
    name, own = name_of(key, locale), key.rpartition(".")[2]
    return f"{name} ({own})" if key.startswith("knobs.") and name != own else name


def knob_texts(locale: Locale) -> dict[str, tuple[str, str]]:
    """Knob -> its name, and what it does."""
    return {name: (say(f"knob.{name}", locale), say(f"knob.{name}_help", locale)) for name in Knobs.model_fields}


def engine_name(runtime: str) -> str:
    """The engine of a runtime, as people write it; a further build of vLLM by the name that the host gave it."""
    return "vLLM" if runtime == "default" else TITLES.get(runtime, runtime)


def value_text(key: str, value: Value, locale: Locale) -> str:
    """A value as a card shows it; models of the hub without their owner."""
    if value is None:
        return say("card.default" if key.startswith("knobs.") else "card.unset", locale)
    if key == "runtime":
        return engine_name(str(value))
    if isinstance(value, bool):
        return say("card.true" if value else "card.false", locale)
    if key == METHOD and value == "off":
        return say("card.off", locale)
    if key in ("target", "speculation.model") and str(value).count("/") == 1 and not str(value).startswith("/"):
        return str(value).partition("/")[2]
    return str(value)

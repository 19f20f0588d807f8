"""Old names of vLLM's settings, and names from articles: the name of each today, or what replaces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from playground.domain.errors import InvalidInput
from playground.domain.message import Message, Where

from .options import bare, grouped, value_of


@dataclass(frozen=True, slots=True)
class OldName:
    """`now`: the dotted key of today's settings that takes the value; None: nothing takes it. `why`: the id of the
    sentence that says so. `still_in`: the newest version that knows the name; there it must not be left out."""

    now: str | None
    why: str
    still_in: str | None = None

    def explained(self, name: str) -> Message:
        return Message(self.why, {"old": name, "new": (self.now or "").rpartition(".")[2]})


def _renamed(now: str) -> OldName:
    return OldName(now, "old.speculation" if now.startswith("speculation.") else "old.renamed")


OLD_NAMES: dict[str, OldName] = {
    "speculative_model": _renamed("speculation.model"),
    "num_speculative_tokens": _renamed("speculation.num_speculative_tokens"),
    "speculative_draft_tensor_parallel_size": _renamed("speculation.draft_tensor_parallel_size"),
    "speculative_max_model_len": _renamed("speculation.max_model_len"),
    "speculative_model_quantization": _renamed("speculation.quantization"),
    "ngram_prompt_lookup_max": _renamed("speculation.prompt_lookup_max"),
    "ngram_prompt_lookup_min": _renamed("speculation.prompt_lookup_min"),
    "speculative_disable_by_batch_size": OldName(None, "old.by_batch_size"),
    "disable_by_batch_size": OldName(None, "old.by_batch_size"),
    "spec_decoding_acceptance_method": OldName(None, "old.acceptance_method"),
    "acceptance_method": OldName(None, "old.acceptance_method"),
    "typical_acceptance_sampler_posterior_threshold": OldName(None, "old.acceptance_method"),
    "typical_acceptance_sampler_posterior_alpha": OldName(None, "old.acceptance_method"),
    "speculative_acceptance_rate": OldName(None, "old.acceptance_rate"),
    "max_prefill_tokens": _renamed("knobs.max_num_batched_tokens"),
    "swap_space": OldName(None, "old.swap_space"),
    "preemption_mode": OldName(None, "old.swap_space"),
    "max_parallel_loading_workers": OldName(None, "old.loading_workers"),
    "dynamic_request_policy": OldName(None, "old.request_policy"),
    "use_v2_block_manager": OldName(None, "old.always_on"),
    "num_lookahead_slots": OldName(None, "old.always_on"),
    "num_scheduler_steps": OldName(None, "old.multi_step"),
    "multi_step_stream_outputs": OldName(None, "old.multi_step"),
    "worker_use_ray": OldName(None, "old.ray"),
    "engine_use_ray": OldName(None, "old.ray"),
    "device": OldName(None, "old.device"),
    "max_seq_len_to_capture": OldName(None, "old.capture"),
    "max_num_partial_prefills": OldName(None, "old.partial_prefills", still_in="0.26"),
    "max_long_partial_prefills": OldName(None, "old.partial_prefills", still_in="0.26"),
    "calculate_kv_scales": OldName(None, "old.kv_scales", still_in="0.26"),
}
# Knob -> a value's old name -> its name today.
OLD_VALUES: dict[str, dict[str, str]] = {"dtype": {"half": "float16", "float": "float32"}}


def replacement(name: str) -> Message | None:
    """What to use instead of a setting that a version lacks, if this is known."""
    old = OLD_NAMES.get(bare(name))
    return old.explained(bare(name)) if old else None


def modernised(settings: Mapping[str, Any], where: Where) -> tuple[dict[str, Any], list[Message]]:
    """Engine settings with today's names, and a note on each translation.

    Old names are understood among the knobs, the speculation's fields, the extra flags, and beside these. What has
    another shape than settings is left for validation to refuse. Raises InvalidInput where the old name
    and the new one are both given and differ.
    """
    modern, notes = dict(settings), list[Message]()
    places = [modern]
    for group in ("knobs", "speculation"):
        if isinstance(modern.get(group), Mapping):
            modern[group] = dict(modern[group])
            places.append(modern[group])
    old = [
        (place, name) for place in places for name in place if _is_old(name, place is modern.get("speculation"))
    ]
    for place, name in old:
        notes += adopt(modern, name, place.pop(name), where)
    if isinstance(flags := modern.get("extra_flags"), (list, tuple)) and all(isinstance(f, str) for f in flags):
        current_flags: list[str] = []
        for words in grouped(flags):
            name, value = value_of(words)
            if _is_old(name, False):
                notes += adopt(modern, name, value, where)
            else:
                current_flags += words
        modern["extra_flags"] = current_flags
    knobs = modern.get("knobs")
    for knob, names in OLD_VALUES.items():
        if isinstance(knobs, dict) and isinstance(value := knobs.get(knob), str) and value in names:
            knobs[knob] = names[value]
            notes.append(Message("old.value", {"key": knob, "old": value, "new": names[value]}))
    return modern, notes


def _is_old(name: str, in_speculation: bool) -> bool:
    old = OLD_NAMES.get(bare(name))
    if old is None or old.still_in:
        return False
    # Today's own spelling, where it belongs.
    return not (in_speculation and old.now == f"speculation.{name}")


def adopt(settings: dict[str, Any], name: str, value: object, where: Where) -> list[Message]:
    """Put an old name's value where it belongs today, in nested settings; says what was done."""
    name = bare(name)
    old = OLD_NAMES[name]
    if old.now is not None:
        group, _, key = old.now.partition(".")
        inner = settings.setdefault(group, {})
        if not isinstance(inner, dict):
            # Refused when it is validated.
            return []
        if key in inner and str(inner[key]) != str(value):
            raise InvalidInput(
                "old.given_twice", where=where, key=old.now, old=name, value=value, new=old.now, other=inner[key]
            )
        inner[key] = value
        if group == "speculation":
            complete(inner)
    return [old.explained(name)]


def complete(speculation: dict[str, Any]) -> None:
    """Set the method that follows from the draft where none is named, as vLLM does."""
    model = speculation.get("model")
    if model in ("ngram", "[ngram]"):
        del speculation["model"]
        speculation["method"] = "ngram"
    elif speculation.get("method") in (None, "off"):
        if isinstance(model, str):
            known = (("eagle-", "eagle"), ("eagle3", "eagle3"), ("dflash", "dflash"), ("dspark", "dspark"))
            named = (method for part, method in known if part in model.lower())
            speculation["method"] = next(named, "draft_model")
        elif speculation.keys() & {"prompt_lookup_max", "prompt_lookup_min"}:
            speculation["method"] = "ngram"

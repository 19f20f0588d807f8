"""Does an engine fit its device, alone and beside the others, and what are the nearest settings that do?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from playground.domain.message import Message
from playground.domain.spec.change import Change
from playground.domain.spec.settings import EngineSettings

from . import card
from .issue import Changes, FitIssue
from .memory import CONTEXT_BYTES, GIB, SHARED_UTILIZATION, Device, Model, Need
from .weights import ONLINE_BITS

# vLLM's own advice for the highest useful share of a card.
MOST_UTILIZATION = 0.95
LENGTH_STEP = 256
MOST_REMEDIES = 4

# Estimates of what an engine takes besides are within this share of what vLLM reports.
FIXED_WITHIN = 0.15
# A KV cache that engines share a card with is a whole number of such parts of an engine's budget, so that a small
# change of one engine leaves the size of the others', which then need no new start.
ROOM_PARTS = 16

NeedOf = Callable[[EngineSettings], Need | None]


@dataclass(frozen=True, slots=True)
class DeviceRoom:
    """A device, how many engines share it, and over how many such devices the target could be split."""

    device: Device
    sharing: int = 1
    splits: tuple[int, ...] = ()


def issues(
    settings: EngineSettings,
    models: Sequence[Model],
    place: DeviceRoom,
    need_of: NeedOf,
    before: Sequence[Need] = (),
) -> list[FitIssue]:
    """The issues of one engine with these `models`, the target first. `before`: the needs of those that start
    earlier on its device."""
    need = need_of(settings)
    if need is None:
        return [FitIssue(Message("preflight.no_length"), "unknown")]
    stored = [model.shape.quantization for model in models]
    context_issues = [
        *card.issues(settings, place.device.capability, place.device.name, stored),
        *_not_understood(models),
        *_too_long(settings, models[0]),
    ]
    if alone := _alone(settings, models, place, need):
        return [*context_issues, replace(alone, remedies=remedies(settings, place, need_of))]
    beside = _beside(settings, place, need, before)
    return [*context_issues, beside] if beside else context_issues


def equal_room(needs: Sequence[Need]) -> int | None:
    """The KV cache in bytes that each of the engines that share a card can have, the same for all; None where it
    would not hold a sequence of each."""
    part = min(need.budget for need in needs) // ROOM_PARTS
    room = min(int(need.kv_available - FIXED_WITHIN * need.fixed) for need in needs) // part * part
    return room if room >= max(need.kv_sequence for need in needs) else None


def remedies(settings: EngineSettings, place: DeviceRoom, need_of: NeedOf) -> tuple[Changes, ...]:
    """The nearest settings that fit: one change if one is enough, else a shorter context beside another change."""
    changes = _changes(settings, place, need_of)
    candidates = [change for change in changes if card.allows(settings, change, place.device.capability)]
    fitting: list[Changes] = [(change,) for change in candidates if _fits(settings, (change,), need_of)]
    if not fitting:
        fitting += (
            (change, shorter)
            for change in candidates
            for shorter in _shorter(need_of(change.apply(settings)))
            if _fits(settings, (change, shorter), need_of)
        )
    # Of several values of one setting the first is the nearest.
    nearest = {remedy[0].key: remedy for remedy in reversed(fitting)}
    return tuple(remedy for remedy in fitting if nearest[remedy[0].key] is remedy)[:MOST_REMEDIES]


def _not_understood(models: Sequence[Model]) -> list[FitIssue]:
    """What makes the sizes estimates: fields that may change the cache in a way unknown here."""
    fields = dict.fromkeys(field for model in models for field in model.shape.unclear)
    return [FitIssue(Message("preflight.not_understood", {"fields": ", ".join(fields)}), "note")] if fields else []


def _too_long(settings: EngineSettings, target: Model) -> list[FitIssue]:
    requested, longest = settings.knobs.max_model_len, target.shape.context
    if not isinstance(requested, int) or longest is None or requested <= longest:
        return []
    problem = Message("preflight.longer_than_model", {"asked": requested, "longest": longest})
    return [FitIssue(problem, "warning", remedies=((Change("knobs.max_model_len", longest),),))]


def _alone(settings: EngineSettings, models: Sequence[Model], place: DeviceRoom, need: Need) -> FitIssue | None:
    """The issue of an engine that does not fit by itself. The caller adds the remedies."""
    if need.fits:
        return None
    loaded = need.weights + need.draft_weights
    fixed_cache = place.device.kind == "cpu" or settings.knobs.kv_cache_memory_bytes is not None
    room = need.kv_available if fixed_cache else need.budget - loaded
    params: dict[str, object] = {"device": place.device.name, "budget": need.budget / GIB}
    if loaded > need.budget:
        params |= {"weights": loaded / GIB}
        return FitIssue(Message("preflight.weights_too_big", params), "blocking", _exact(settings, models))
    if need.kv_sequence > room:
        plain = all(model.shape.plain for model in models)
        sizes: dict[str, object] = {"tokens": need.length, "sequence": need.kv_sequence / GIB, "room": room / GIB}
        return FitIssue(Message("preflight.no_sequence", sizes), "blocking", plain and _exact(settings, models))
    params |= {"needed": max(need.total, need.reserved) / GIB}
    return FitIssue(Message("preflight.too_tight", params), "blocking")


def _exact(settings: EngineSettings, models: Sequence[Model]) -> bool:
    """Whether the weights are exact, and no unread flag can change what is loaded, or where."""
    online = (settings.knobs.quantization, getattr(settings.speculation, "quantization", None))
    return not settings.extra_flags and all(
        model.exact and (model.shape.quantization or quantization is None or quantization in ONLINE_BITS)
        for model, quantization in zip(models, online, strict=False)
    )


def _beside(settings: EngineSettings, place: DeviceRoom, need: Need, before: Sequence[Need]) -> FitIssue | None:
    """The issue of an engine beside earlier ones: vLLM refuses to start if less is free than it may take."""
    device = place.device
    taken = sum(other.reserved for other in before)
    contexts = CONTEXT_BYTES * len(before) if device.kind == "cuda" else 0
    left, free = device.total_bytes - taken - contexts, device.free_bytes - taken - contexts
    params: dict[str, object] = {"device": device.name, "asked": need.claim / GIB}
    if before and need.claim > left:
        params |= {"taken": taken / GIB, "total": device.total_bytes / GIB, "engines": place.sharing}
        # An engine that fills its share of the card takes exactly that.
        exact = device.kind == "cuda" and all(other.reserved == other.budget for other in before)
        certain = exact and need.claim > left + contexts and not settings.extra_flags
        share = math.floor(100 * left / device.total_bytes) / 100
        fits_share = device.kind == "cuda" and need.total <= share * device.total_bytes
        lower: tuple[Changes, ...] = ((Change("knobs.gpu_memory_utilization", share),),) if fits_share else ()
        return FitIssue(Message("preflight.together", params), "blocking", certain, lower)
    if need.claim > free:
        params |= {"free": max(free, 0) / GIB}
        return FitIssue(Message("preflight.not_free", params), "warning")
    return None


def _fits(settings: EngineSettings, changes: Changes, need_of: NeedOf) -> bool:
    for change in changes:
        settings = change.apply(settings)
    need = need_of(settings)
    return need is not None and need.fits


def _changes(settings: EngineSettings, place: DeviceRoom, need_of: NeedOf) -> Iterator[Change]:
    """Changes that could help, the mildest first."""
    knobs, need = settings.knobs, need_of(settings)
    yield from _shorter(need)
    if need is not None:
        yield from _larger_cache(settings, place, need)
    yield from (Change("knobs.max_num_seqs", seqs) for seqs in (256, 64, 16) if seqs < (knobs.max_num_seqs or 257))
    if (knobs.max_num_batched_tokens or 2049) > 2048:
        yield Change("knobs.max_num_batched_tokens", 2048)
    if settings.speculates:
        yield Change("speculation", "off")
    if place.device.kind == "cuda":
        if knobs.quantization is None:
            yield Change("knobs.quantization", "fp8")
        more = (size for size in place.splits if size > (knobs.tensor_parallel_size or 1))
        yield from (Change("knobs.tensor_parallel_size", size) for size in more)


def _larger_cache(settings: EngineSettings, place: DeviceRoom, need: Need) -> Iterator[Change]:
    """More memory for the KV cache, or smaller entries."""
    knobs, device = settings.knobs, place.device
    if device.kind == "cpu" or knobs.kv_cache_memory_bytes is not None:
        yield Change("knobs.kv_cache_memory_bytes", math.ceil(need.kv_sequence / GIB) * GIB)
    else:
        most = MOST_UTILIZATION if place.sharing == 1 else SHARED_UTILIZATION / place.sharing
        share = math.ceil(100 * need.total / device.total_bytes) / 100
        if share <= most:
            yield Change("knobs.gpu_memory_utilization", share)
    if device.kind == "cuda" and knobs.kv_cache_dtype in (None, "auto"):
        yield Change("knobs.kv_cache_dtype", "fp8")


def _shorter(need: Need | None) -> Iterator[Change]:
    """The longest context that fits, unless that is too short to be useful."""
    if need is None or need.kv_available <= 0:
        return
    length = min(need.kv_available // need.kv_per_token, need.length - 1) // LENGTH_STEP * LENGTH_STEP
    if length >= 2 * LENGTH_STEP:
        yield Change("knobs.max_model_len", length)

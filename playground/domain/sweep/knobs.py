"""What a sweep can vary, by name: a side's engine settings, or the workload that all sides get."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from playground.domain.errors import InvalidInput
from playground.domain.spec.case import Case, Side
from playground.domain.spec.change import Change, Value
from playground.domain.spec.measurement import Measurement
from playground.domain.spec.settings import EngineSettings, Knobs
from playground.domain.spec.speculation import MOST_K, SPECULATION_METHODS, Ngram
from playground.domain.spec.workload import Sampling
from playground.domain.speculation.theory import geometric_rates
from playground.domain.validation import nearest_of, reason

# Shorter names for what is varied most.
ALIASES = {"k": "num_speculative_tokens", "draft": "model"}
# The share of draft tokens to accept at each position: set on the engine as synthetic acceptance.
ACCEPTANCE = "acceptance"
PLAIN = ("target", "runtime")
LETTERS = "ABCD"
SPECULATION = frozenset(
    name
    for model in SPECULATION_METHODS.values()
    for name in model.model_fields
    if name != "method" and name not in Knobs.model_fields
)
ENGINE_KNOBS = frozenset({*Knobs.model_fields, *SPECULATION, *ALIASES, *PLAIN, ACCEPTANCE})


def _sampling(name: str) -> Callable[[Case, Value], Case]:
    def change(case: Case, value: Value) -> Case:
        sampling = Sampling.model_validate({**case.workload.sampling.model_dump(), name: value})
        return _with(case, workload=case.workload.model_copy(update={"sampling": sampling}))

    return change


def _profile(name: str) -> Callable[[Case, Value], Case]:
    def change(case: Case, value: Value) -> Case:
        return _measured(case, profile={**case.measurement.profile.model_dump(), name: value})

    return change


def _concurrency(case: Case, value: Value) -> Case:
    """Set the concurrency, and enough requests to reach it: at least two for each that runs at once."""
    profile = case.measurement.profile.model_dump()
    if profile["requests"] is not None and isinstance(value, int):
        profile["requests"] = max(profile["requests"], 2 * value)
    return _measured(case, profile={**profile, "concurrency": value})


def _prompt_tokens(case: Case, value: Value) -> Case:
    return _measured(case, prompts={"input_tokens": value})


def _output_tokens(case: Case, value: Value) -> Case:
    """Set the exact length of the answers."""
    return _sampling("ignore_eos")(_sampling("max_tokens")(case, value), True)


def _prompts(case: Case, value: Value) -> Case:
    return _measured(case, prompts=value)


WORKLOAD_KNOBS: dict[str, Callable[[Case, Value], Case]] = {
    "concurrency": _concurrency,
    "requests": _profile("requests"),
    "requests_per_s": _profile("requests_per_s"),
    "prompt_tokens": _prompt_tokens,
    "output_tokens": _output_tokens,
    "prompts": _prompts,
    **{name: _sampling(name) for name in ("temperature", "top_p", "top_k", "min_p")},
}
# A side with a load profile of its own would not follow these.
LOAD_KNOBS = ("concurrency", "requests", "requests_per_s")
NAMES = sorted({*ENGINE_KNOBS, *WORKLOAD_KNOBS})


def changed(case: Case, name: str, value: Value, side: str | None) -> Case:
    """The case with one knob set, on one side or (None) on each that has it. Raises InvalidInput."""
    try:
        if name in WORKLOAD_KNOBS:
            if side is not None:
                raise InvalidInput("sweep.workload_has_no_side", knob=name, side=side)
            profiled = next((known.label for known in case.sides if known.profile is not None), None)
            if profiled is not None and name in LOAD_KNOBS:
                raise InvalidInput("sweep.own_profile", knob=name, side=profiled)
            return WORKLOAD_KNOBS[name](case, value)
        if name not in ENGINE_KNOBS:
            raise InvalidInput("sweep.unknown_knob", knob=name, nearest=nearest_of(name, NAMES))
        return _on_sides(case, name, value, side)
    except ValidationError as error:
        raise InvalidInput("sweep.bad_value", knob=name, value=value, detail=reason(error)) from error


def label_of(case: Case, side: str) -> str:
    """The label of a side that is named by it, or by its letter: A is the first. Raises InvalidInput."""
    labels = [known.label for known in case.sides]
    if side in labels:
        return side
    if side in tuple(LETTERS[: len(labels)]):
        return labels[LETTERS.index(side)]
    raise InvalidInput("sweep.unknown_side", side=side, known=", ".join(labels))


def varied_sides(case: Case, name: str, side: str | None) -> list[str]:
    """Labels of the sides that an engine's knob varies: that one, or each that has it. Raises InvalidInput."""
    label = None if side is None else label_of(case, side)
    chosen = [known.label for known in case.sides if label in (None, known.label) and _has(known, name)]
    if not chosen:
        labels = ", ".join(known.label for known in case.sides)
        raise InvalidInput("sweep.no_side_has_it", knob=name, side=label or labels)
    return chosen


def _on_sides(case: Case, name: str, value: Value, side: str | None) -> Case:
    chosen = varied_sides(case, name, side)
    sides = tuple(_with_knob(known, name, value) if known.label in chosen else known for known in case.sides)
    return _with(case, sides=sides)


def _has(side: Side, name: str) -> bool:
    if not isinstance(side.engine, EngineSettings):
        return False
    if name == ACCEPTANCE:
        return side.engine.speculates is True
    field = ALIASES.get(name, name)
    return field not in SPECULATION or field in type(side.engine.speculation).model_fields


def _with_knob(side: Side, name: str, value: Value) -> Side:
    assert isinstance(side.engine, EngineSettings)
    if name == ACCEPTANCE:
        return side.model_copy(update={"engine": _accepting(side.engine, value)})
    field = ALIASES.get(name, name)
    place = "speculation." if field in SPECULATION else "" if field in PLAIN else "knobs."
    engine = side.engine
    if field == "num_speculative_tokens":
        engine = with_k(engine, value)
    elif field == "prompt_lookup_max" and isinstance(engine.speculation, Ngram) and isinstance(value, int):
        # The longest match must not be shorter than the shortest.
        least = min(engine.speculation.prompt_lookup_min, value)
        engine = Change("speculation.prompt_lookup_min", least).apply(engine)
    elif field == "runtime" and value is None:
        # The word "default" is also the name of the host's own runtime.
        value = EngineSettings.model_fields["runtime"].default
    return side.model_copy(update={"engine": Change(place + field, value).apply(engine)})


def with_k(engine: EngineSettings, value: Value) -> EngineSettings:
    """Set k. Synthetic rates are a list of k values, which follow from the first of them."""
    rates = engine.speculation.model_dump().get("synthetic_acceptance_rates")
    # The settings refuse an invalid k, before a list of that length is built.
    if not rates or not isinstance(value, int) or not 1 <= value <= MOST_K:
        return Change("speculation.num_speculative_tokens", value).apply(engine)
    return _accepting(engine, rates[0], value)


def _accepting(engine: EngineSettings, value: Value, k: int | None = None) -> EngineSettings:
    """Speculation whose drafts are accepted at that rate, whatever they are: for speed only."""
    speculation = engine.speculation.model_dump()
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("sweep.bad_value", knob=ACCEPTANCE, value=value, detail="0 ... 1")
    speculation |= {
        "num_speculative_tokens": k or speculation["num_speculative_tokens"],
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_length": None,
    }
    rates = geometric_rates(float(value), speculation["num_speculative_tokens"])
    speculation["synthetic_acceptance_rates"] = rates
    return EngineSettings.model_validate({**engine.model_dump(), "speculation": speculation})


def _measured(case: Case, **changes: object) -> Case:
    measurement = Measurement.model_validate({**case.measurement.model_dump(), **changes})
    return _with(case, measurement=measurement)


def _with(case: Case, **changes: object) -> Case:
    return case.model_copy(update=changes)

"""Load profiles: how requests are sent. One class for each kind, which answers all that depends on the kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, get_args

from pydantic import Field, model_validator

from playground.domain.spec.fields import Frozen, PositiveInt
from playground.domain.spec.schedule import Pace
from playground.domain.validation import choices, refused

# How many requests at once warm a side up for a load whose concurrency is open.
WARM_UP_AT_RATE = 8
ENDINGS = ("requests", "duration_s")

Concurrency = Annotated[int, Field(ge=1, le=4096)]


class _Profile(Frozen):
    """The fields and defaults of all profiles.

    A profile stops sending after so many requests or seconds, whichever comes first. Requests under way then still
    run to their end: half an answer would bias every figure.
    """

    requests: PositiveInt | None = None
    duration_s: Annotated[float, Field(gt=0)] | None = None

    # Whether only a number of requests can end it.
    needs_requests: ClassVar[bool] = False
    # Whether its load stays the same from the first request to the last.
    steady: ClassVar[bool] = True

    @model_validator(mode="after")
    def _ends(self) -> _Profile:
        if self.requests is None and self.duration_s is None:
            raise refused("accepted.ending", "requests")
        return self

    @property
    def peak(self) -> int:
        """The most requests that can be under way at once."""
        raise NotImplementedError

    @property
    def pace(self) -> Pace:
        """How its requests leave, in the numbers that the driver needs."""
        return Pace(self.requests, self.duration_s, first=self.peak, last=self.peak)

    def available_ms(self, ends_ms: Sequence[float]) -> list[float]:
        """When each answer is available, by when each request of a trial ended (both in the order of sending)."""
        return list(ends_ms)

    def warm_up(self) -> ConcurrencyProfile:
        """A profile of as many requests as the load sends at once."""
        at_once = min(self.peak, self.requests or self.peak)
        return ConcurrencyProfile(concurrency=at_once, requests=at_once)


class ConcurrencyProfile(_Profile):
    """So many requests at any time: the next leaves as soon as one has ended."""

    kind: Literal["concurrency"] = "concurrency"
    concurrency: Concurrency = 1

    @property
    def peak(self) -> int:
        return self.concurrency


class RateProfile(_Profile):
    """Requests leave at a rate, evenly or at random; one that is due while `concurrency` run waits its turn."""

    kind: Literal["rate"] = "rate"
    requests_per_s: Annotated[float, Field(gt=0, examples=[2])]
    arrivals: Literal["poisson", "constant"] = "poisson"
    concurrency: Concurrency = 256

    @property
    def peak(self) -> int:
        return self.concurrency

    @property
    def pace(self) -> Pace:
        return replace(super().pace, gap_ms=1000 / self.requests_per_s, random=self.arrivals == "poisson")

    def warm_up(self) -> ConcurrencyProfile:
        """A profile of a few requests at once: how many this load sends at once is not known in advance."""
        at_once = min(self.peak, WARM_UP_AT_RATE, self.requests or WARM_UP_AT_RATE)
        return ConcurrencyProfile(concurrency=at_once, requests=at_once)


class WavesProfile(_Profile):
    """Static batching: so many at once, and the next wave only when the last request of this one has ended."""

    kind: Literal["waves"] = "waves"
    concurrency: Concurrency

    @property
    def peak(self) -> int:
        return self.concurrency

    @property
    def pace(self) -> Pace:
        return replace(super().pace, wave=self.concurrency)

    def available_ms(self, ends_ms: Sequence[float]) -> list[float]:
        """A static batch hands back all its answers when the longest has ended."""
        size = self.concurrency
        return [max(ends_ms[at - at % size :][:size]) for at in range(len(ends_ms))]


class RampProfile(_Profile):
    """Concurrency that goes from `first` to `last`, evenly over the requests."""

    kind: Literal["ramp"] = "ramp"
    first: Concurrency = 1
    last: Annotated[Concurrency, Field(examples=[8])]

    needs_requests: ClassVar[bool] = True
    steady: ClassVar[bool] = False

    @model_validator(mode="after")
    def _is_over_requests(self) -> RampProfile:
        if self.requests is None:
            raise refused("accepted.ramp", "requests")
        return self

    @property
    def peak(self) -> int:
        return max(self.first, self.last)

    @property
    def pace(self) -> Pace:
        return replace(super().pace, first=self.first, last=self.last)


LoadProfile = Annotated[ConcurrencyProfile | RateProfile | WavesProfile | RampProfile, Field(discriminator="kind")]
PROFILES: dict[str, type[_Profile]] = {
    model.model_fields["kind"].default: model for model in get_args(get_args(LoadProfile)[0])
}


@dataclass(frozen=True, slots=True)
class ProfileField:
    """A field that some kinds of profile have and others lack: what a form needs to ask for it.

    `initial` is what it starts with: the default in the first of `kinds`, or its example where there is none.
    `choices`: the values that it accepts; None: free text.
    """

    name: str
    kinds: tuple[str, ...]
    initial: object
    choices: list[str] | None


def profile_fields() -> list[ProfileField]:
    """The fields of a form beside kind and endings; those that several kinds share come last."""
    kinds: dict[str, list[str]] = {}
    for kind, model in PROFILES.items():
        for name in model.model_fields:
            if name not in ("kind", *ENDINGS):
                kinds.setdefault(name, []).append(kind)
    fields = []
    for name, having in kinds.items():
        model = PROFILES[having[0]]
        info = model.model_fields[name]
        initial = info.examples[0] if info.examples else info.default
        fields.append(ProfileField(name, tuple(having), initial, choices(model, name)))
    return sorted(fields, key=lambda field: len(field.kinds))

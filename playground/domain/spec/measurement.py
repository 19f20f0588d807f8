"""How a workload is measured: the prompts, the load, and when the rounds stop."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from playground.domain.spec.fields import Frozen, PositiveInt

from .load_profile import ConcurrencyProfile, LoadProfile
from .workload import Limits

# Names of tasks become one argument of a command, separated by commas.
TaskName = Annotated[str, Field(pattern=r"^[\w./][\w./ -]*$")]
# Fewer rounds give an interval too wide to be useful.
MIN_ROUNDS = 6
# (high - low) / speed-up at which rounds stop unless the user says otherwise: about plus or minus 5%.
TARGET_WIDTH = 0.1


class SyntheticPrompts(Frozen):
    """Prompts of a given length in tokens, by the first side's own tokenizer."""

    input_tokens: Annotated[int, Field(ge=1, le=1_000_000)]
    count: Annotated[int, Field(ge=1, le=10_000)] = 32


class Harness(Frozen):
    """The questions that lm-evaluation-harness asks after the last round.

    `tasks` are names that it knows, or paths of task files. `limit`: at most so many questions of each; None: all.
    """

    tasks: Annotated[tuple[TaskName, ...], Field(min_length=1, max_length=16)]
    limit: Annotated[int, Field(ge=1, le=100_000)] | None = None


class Measurement(Frozen):
    """What measured mode adds to a workload.

    `prompts` names a built-in set or a file, or describes synthetic ones; None: the workload's own prompt, again
    and again. `target_width` is the relative width of the 95% interval at which rounds stop; `max_rounds` and
    `budget_s` end them in any case. The budget counts from the first round's start: warm-up and the checks of the
    answers come on top. `harness`: the accuracy by lm-evaluation-harness, where it is installed.
    `price_per_hour`: of one GPU, or of a machine without any, in any currency; it gives the output's cost.
    """

    prompts: Annotated[str, Field(min_length=1)] | SyntheticPrompts | None = None
    profile: LoadProfile = ConcurrencyProfile(requests=8)
    limits: Limits = Limits()
    target_width: Annotated[float, Field(ge=0.005, le=2)] = TARGET_WIDTH
    max_rounds: Annotated[int, Field(ge=MIN_ROUNDS, le=200)] = 20
    budget_s: Annotated[float, Field(gt=0, le=7 * 86400)] = 900
    check_outputs: bool = True
    check_accuracy: bool = False
    harness: Harness | None = None
    price_per_hour: Annotated[float, Field(gt=0, le=1_000_000)] | None = None

    @property
    def requests(self) -> PositiveInt | None:
        """How many each trial sends; None where only time ends it."""
        return self.profile.requests

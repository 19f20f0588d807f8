"""How much one visitor, one file or one endpoint may ask of this host: every limit.

The host sets them with PLAYGROUND_LIMITS; the table in docs/configuration.md is checked against the fields.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InvalidInput
from .message import Message

# No limit is larger.
MOST = 10**15


@dataclass(frozen=True)
class Limits:
    """The most that is accepted of each; names end with the unit where it is not a count of the thing itself."""

    # What a form, a preset or the command line may hold.
    label_characters: int = 200
    settings_characters: int = 100_000
    conversation_characters: int = 4_000_000
    prompts: int = 10_000
    prompts_characters: int = 40_000_000
    synthetic_tokens: int = 4_000_000
    run_requests: int = 1_000_000
    output_tokens: int = 262_144
    trial_output_tokens: int = 100_000_000
    engine_processes: int = 64
    sweep_points: int = 256
    waiting_runs: int = 20
    # What is sent to the page.
    upload_bytes: int = 20_000_000
    uploads_bytes: int = 1_000_000_000
    body_bytes: int = 8_000_000
    preset_bytes: int = 1_000_000
    # What an endpoint or engine sends.
    response_bytes: int = 128_000_000
    event_bytes: int = 8_000_000
    load_bytes: int = 2_000_000_000
    log_bytes: int = 50_000_000

    def check(self, name: str, value: int, side: str | None = None) -> None:
        """Raises InvalidInput, which names the limit, if the value is above it. `side`: the label of its side."""
        limit: int = getattr(self, name)
        if value > limit:
            what = Message(f"limit.{name}")
            of_side = {} if side is None else {"side": side}
            raise InvalidInput("limits.exceeded", **of_side, what=what, value=value, limit=limit, name=name)


DEFAULTS = Limits()

"""What output tokens cost: in joules of the GPUs, and in money by the price of an hour or of a token."""

from __future__ import annotations

from collections.abc import Sequence

from .run import SideRecord, TokenPrices, Trial
from .traces import duration_ms, output_tokens


def energy_per_token_j(trials: Sequence[Trial]) -> float | None:
    """Joules of the trials / their output tokens; None where either is unknown for any of them."""
    energies = [trial.energy_j for trial in trials if trial.energy_j is not None]
    tokens = _tokens(trials)
    return sum(energies) / tokens if tokens and len(energies) == len(trials) else None


def cost_per_million(side: SideRecord, trials: Sequence[Trial], price_per_hour: float | None) -> float | None:
    """What a million output tokens cost, in the price's currency; those of an endpoint by the token, with the
    prompts that they answer. `price_per_hour`: of one GPU, or of a machine without any; None: unknown."""
    if side.token_prices is not None:
        return _by_token(side.token_prices, trials)
    tokens, hours = _tokens(trials), sum(duration_ms(trial.requests) or 0.0 for trial in trials) / 3_600_000
    if price_per_hour is None or not tokens or not hours:
        return None
    return price_per_hour * side.cards * hours / tokens * 1_000_000


def _by_token(prices: TokenPrices, trials: Sequence[Trial]) -> float | None:
    answered = _tokens(trials)
    asked = [trace.prompt_tokens for trial in trials for trace in trial.requests if trace.chunks]
    if not answered or None in asked:
        return None
    return prices[0] * sum(count or 0 for count in asked) / answered + prices[1]


def _tokens(trials: Sequence[Trial]) -> int | None:
    return output_tokens([trace for trial in trials for trace in trial.requests])

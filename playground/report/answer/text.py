"""What came out of a run or sweep, in a few words for a list."""

from __future__ import annotations

from playground.domain.stats.headline import Headline
from playground.domain.stats.verdicts import Outcome
from playground.i18n import Locale, say
from playground.report.figures import number

VERDICTS: dict[Outcome, str] = {
    "faster": "hist.faster",
    "slower": "hist.slower",
    "no clear difference": "hist.no_clear_difference",
}


def result_text(headline: Headline, locale: Locale = "en") -> str:
    """The speed-up with its interval and the verdict; of a race how fast each side was."""
    if headline.speed_up is not None:
        params: dict[str, object] = {"speed_up": headline.speed_up, "side": headline.side}
        if headline.interval is None or headline.verdict is None:
            return say("hist.unsure", locale, **params)
        low, high = headline.interval
        verdict = say(VERDICTS[headline.verdict], locale)
        return say("hist.result", locale, **params, low=low, high=high, verdict=verdict)
    if not any(headline.rates):
        return "-"
    return say("hist.rates", locale, rates=" | ".join(map(number, headline.rates)))

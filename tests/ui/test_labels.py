"""The language of what the server writes."""

from __future__ import annotations

import pytest

from playground.i18n import Locale
from playground.ui.shared.labels import locale_by

CHOSEN = "playground-language"


@pytest.mark.parametrize(
    ("cookie", "browser", "locale"),
    [
        (f"{CHOSEN}=zh-CN", "en", "zh-CN"),
        (f"a=b; {CHOSEN}=en; c=d", "zh-CN,zh;q=0.9", "en"),
        (f"{CHOSEN}=xx", "zh-TW", "zh-CN"),
        (f"other-{CHOSEN}=zh-CN", "en", "en"),
        ("", None, "en"),
    ],
)
def test_what_was_chosen_on_the_page_goes_before_what_the_browser_says(
    cookie: str, browser: str | None, locale: Locale
) -> None:
    headers = {"cookie": cookie} | ({"accept-language": browser} if browser else {})
    assert locale_by(headers) == locale

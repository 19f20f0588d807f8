"""A real browser on a playground that runs as a process."""

from __future__ import annotations

import subprocess

from playwright.async_api import Browser, Locator, Page, expect

from support.real import ROOT

SHOTS = ROOT / "build" / "screenshots"

START_MS = 300_000

# The process, and its address.
App = tuple[subprocess.Popen[bytes], str]


async def opened(
    browser: Browser, url: str, errors: list[str], *, width: int = 1440, locale: str = "en-US"
) -> Page:
    """A page in a visitor's own context; whatever it complains about lands in `errors`."""
    context = await browser.new_context(viewport={"width": width, "height": 1000}, locale=locale)
    page = await context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto(url)
    await expect(page.locator("#race")).to_be_visible(timeout=60_000)
    return page


async def shot(page: Page, name: str) -> None:
    """Two engines and a browser on two cores: a picture can take its time."""
    await page.screenshot(path=SHOTS / f"{name}.png", full_page=True, timeout=120_000)


async def fill(box: Locator, text: str) -> None:
    """Until it stays: on a slow machine a field that has just appeared, or a preset that is still on its way,
    puts its own value over what was typed."""
    await expect(box).to_be_visible()
    for _ in range(10):
        await box.fill(text)
        await box.press("Tab")
        stays = [await box.input_value() for _ in range(4) if not await box.page.wait_for_timeout(250)]
        if set(stays) == {text}:
            return
    raise AssertionError(f"{text!r} was overwritten again and again, by {stays}")


async def overflows(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    return bool(await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"))

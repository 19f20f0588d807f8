"""A real browser on the page."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from playwright.async_api import Browser, Locator, Page, expect

from playground.runs.host import Host
from playground.ui.page import build
from playground.ui.server.server import listen, served
from support.real import ROOT

SHOTS = ROOT / "build" / "screenshots"

START_MS = 300_000
# No test judges how fast the page is: other tests have the processors, too.
expect.set_options(timeout=30_000)

# The process, and its address.
App = tuple[subprocess.Popen[bytes], str]


@asynccontextmanager
async def page_of(host: Host) -> AsyncIterator[str]:
    """The host's page, served in its event loop as `app.py` serves it in a thread. Yields its address."""
    sockets = listen("127.0.0.1", 0)
    options = uvicorn.Config(served(host, build(host)), log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(options)
    serving = asyncio.create_task(server.serve(sockets))
    yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    server.should_exit = True
    await serving


async def opened(
    browser: Browser, url: str, errors: list[str], *, width: int = 1440, locale: str = "en-US"
) -> Page:
    """A page in a visitor's own context; whatever it complains about lands in `errors`."""
    context = await browser.new_context(viewport={"width": width, "height": 1000}, locale=locale)
    page = await context.new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    await page.goto(url)
    await expect(page.locator("#race")).to_be_attached(timeout=60_000)
    return page


async def shot(page: Page, name: str) -> None:
    """Two engines and a browser on two cores: a picture can take its time."""
    SHOTS.mkdir(parents=True, exist_ok=True)
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


async def choose(page: Page, preset: str) -> None:
    """A preset of the gallery."""
    await page.locator(".choose").click()
    offer = page.locator(f'.gallery a.title[href="?preset={preset}"]')
    await expect(offer).to_be_attached()
    if not await offer.is_visible():
        await page.locator(".gallery summary").click()
    await offer.click()


async def unfold(page: Page, name: str) -> None:
    """Open what is folded, such as "all-charts", unless it is open."""
    fold = page.locator(f".{name}:visible").first
    if await fold.get_attribute("open") is None:
        await fold.locator("> summary").click()


async def overflows(page: Page) -> bool:
    """Whether the page scrolls sideways."""
    return bool(await page.evaluate("document.documentElement.scrollWidth > innerWidth + 1"))

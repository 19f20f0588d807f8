"""Guessed passwords, and what is open without one."""

from __future__ import annotations

import time
from pathlib import Path

import httpx

from benchmarks.common import real_app, stand_in
from benchmarks.trials import Outcome, Trial
from benchmarks.visitor import API


async def guesses(place: Path) -> Outcome:
    with real_app(place, stand_in(place, rate=200) | {"PLAYGROUND_AUTH": "user:right"}) as (_, url):
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            looked_at, since = 0, time.monotonic()
            for number in range(200):
                answer = await client.post("/login", data={"username": "user", "password": f"wrong{number}"})
                looked_at += answer.status_code != 429
                if time.monotonic() - since > 20:
                    break
        return Outcome(looked_at <= 20, f"{looked_at} guesses looked at")


async def without_login(place: Path) -> Outcome:
    paths = ("/config", f"{API}/info", "/openapi.json", "/docs", "/redoc", "/monitoring")
    with real_app(place, stand_in(place, rate=200) | {"PLAYGROUND_AUTH": "user:right"}) as (_, url):
        async with httpx.AsyncClient(base_url=url) as client:
            open_paths = [path for path in paths if (await client.get(path)).is_success]
            answer = await client.post("/login", data={"username": "user", "password": "right"})
            cookies = answer.headers.get_list("set-cookie")
            loose = [cookie.split("=")[0] for cookie in cookies if "samesite=none" in cookie.lower()]
        seen = f"open: {', '.join(open_paths) or 'nothing'}; SameSite=None: {', '.join(loose) or 'none'}"
        return Outcome(answer.is_success and not open_paths and not loose, seen)


LOGINS = (
    Trial("guesses", "at most 20", guesses),
    Trial("without-login", "nothing open, no SameSite=None", without_login),
)

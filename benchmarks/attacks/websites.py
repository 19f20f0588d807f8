"""What other websites may try through a visitor's browser."""

from __future__ import annotations

import contextlib
from pathlib import Path

import httpx

from benchmarks.trials import Outcome, Trial, until
from benchmarks.visitor import API

from .visits import runs, visited


async def foreign_host(place: Path) -> Outcome:
    async with visited(place) as (_, url, _), httpx.AsyncClient() as client:
        answers = [await client.get(url + path, headers={"Host": "evil.example"}) for path in ("/", "/config")]
        statuses = [answer.status_code for answer in answers]
        return Outcome(all(status in (400, 403, 421) for status in statuses), f"statuses {statuses}")


EVIL = "http://evil.example"


async def foreign_origin(place: Path) -> Outcome:
    async with visited(place) as (visitor, _, _):
        visitor.client.headers["Origin"] = EVIL
        with contextlib.suppress(httpx.HTTPError):
            await visitor.send("race")
        begun = await until(lambda: bool(runs(place)), within_s=3)
        upload = 0
        # It may be refused before it was sent.
        with contextlib.suppress(httpx.TransportError):
            upload = (await visitor.client.post(f"{API}/upload", files={"files": ("a.txt", b"a")})).status_code
        seen = f"race {'started' if begun else 'refused'}, upload {upload or 'cut off'}"
        return Outcome(not begun and upload in (0, 403), seen)


async def echoed_origin(place: Path) -> Outcome:
    async with visited(place) as (_, url, _), httpx.AsyncClient() as client:
        allowed = []
        for headers in ({"Origin": EVIL}, {"Origin": EVIL, "Host": "named.example"}, {"Origin": "null"}):
            answer = await client.get(f"{url}/config", headers=headers)
            if answer.headers.get("access-control-allow-origin") in (headers["Origin"], "*"):
                allowed.append(headers)
        return Outcome(not allowed, f"allowed to {len(allowed)} of 3 foreign origins")


WEBSITES = (
    Trial("foreign-host", "403 or 421", foreign_host),
    Trial("foreign-origin", "refused", foreign_origin),
    Trial("echoed-origin", "to none", echoed_origin),
)

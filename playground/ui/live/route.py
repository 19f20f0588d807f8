"""The routes of what is followed: `GET /live/ID`, for a run or a sweep, and of what is played: `GET
/live/replay/KIND/NAME`, for a recording or a run of the history."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import BaseRoute, Route

from playground.domain.errors import PlaygroundError
from playground.i18n import Locale, say_message
from playground.runs.host import Host
from playground.store import READERS
from playground.ui.shared.form_origin import stored
from playground.ui.shared.labels import locale_by

from . import feeds
from .channel import END, Channels, event
from .replay import Replays

logger = logging.getLogger(__name__)

# A proxy passes on what comes, and nobody keeps it.
HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


def routes(host: Host) -> list[BaseRoute]:
    """The routes, to be served beside the page."""
    channels = Channels()
    replays = Replays(host)

    async def live(request: Request) -> StreamingResponse:
        locale = locale_by(request.headers)
        events = _events(host, channels, request.path_params["record_id"], locale)
        return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)

    async def replay(request: Request) -> JSONResponse:
        locale = locale_by(request.headers)
        kind, name = request.path_params["kind"], request.path_params["name"]
        try:
            return JSONResponse(await READERS.run(replays.replay, kind, name, locale), headers=HEADERS)
        except PlaygroundError as error:
            logger.warning("%s %s can't be played: %s", kind, name, say_message(error))
            return JSONResponse({"problem": say_message(error, locale)}, 404, headers=HEADERS)

    return [Route("/live/{record_id}", live), Route("/live/replay/{kind}/{name}", replay)]


def _events(host: Host, channels: Channels, record_id: str, locale: Locale) -> AsyncIterator[bytes]:
    config, name = host.config, (record_id, locale)
    if (comparison := host.followed(record_id)) is not None:
        return channels.follow(name, lambda: feeds.of_run(config, comparison, locale))
    if (sweep_run := host.followed_sweep(record_id)) is not None:
        return channels.follow(name, lambda: feeds.of_sweep(config, sweep_run, locale))
    return _ended(host, record_id, locale)


async def _ended(host: Host, record_id: str, locale: Locale) -> AsyncIterator[bytes]:
    """What has ended while nobody was connected. Of what is not in the history, only that it has ended."""
    try:
        record = await READERS.run(stored, host, record_id)
    except PlaygroundError as error:
        logger.warning("%s can't be followed: %s", record_id, say_message(error))
        record = None
    if record is not None:
        for part, value in (await READERS.run(feeds.stored, host, record, locale)).items():
            yield event(part, value)
    yield END

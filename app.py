"""Serve the playground: read the configuration, build the page, launch it, close everything at the end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.domain.message import Message
from playground.i18n import say_message
from playground.runs.host import Host
from playground.ui.page import build, launch_options


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    ended = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: ended.set())
    try:
        host = Host(Config.from_environment())
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    page = build(host)
    try:
        _, url, _ = page.launch(prevent_thread_lock=True, **launch_options(host))
    except OSError as error:
        problem = Message(
            "app.port_taken", {"host": host.config.host, "port": host.config.port, "detail": str(error)}
        )
        print(say_message(problem), file=sys.stderr)
        return 2
    print(f"The playground is at {url}", flush=True)
    ended.wait()
    if host.loop is not None:
        asyncio.run_coroutine_threadsafe(host.close(), host.loop).result()
    page.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

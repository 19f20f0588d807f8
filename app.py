"""Serve the playground: read the configuration, build the page, launch it, close everything at the end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading

from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.i18n import say_message
from playground.runs.host import Host
from playground.ui.page import build
from playground.ui.server.server import Server, listen, served


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    ended = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: ended.set())
    try:
        config = Config.from_environment()
        sockets = listen(config.host, config.port)
        host = Host(config)
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    server = Server(sockets, served(host, build(host)))
    print(f"The playground is at {server.url}", flush=True)
    ended.wait()
    if host.loop is not None:
        asyncio.run_coroutine_threadsafe(host.close(), host.loop).result()
    server.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

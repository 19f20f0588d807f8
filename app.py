"""Serve the playground: read the configuration, build the page, launch it, close everything at the end."""

from __future__ import annotations

import asyncio
import errno
import logging
import signal
import socket
import sys
import threading

from playground.config import Config
from playground.domain.errors import InvalidInput, PlaygroundError
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
        config = Config.from_environment()
        check_address(config.host, config.port)
        host = Host(config)
        page = build(host)
        try:
            _, url, _ = page.launch(prevent_thread_lock=True, **launch_options(host))
        except OSError as error:
            raise InvalidInput("app.port_taken", host=config.host, port=config.port, detail=error) from error
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    print(f"The playground is at {url}", flush=True)
    ended.wait()
    if host.loop is not None:
        asyncio.run_coroutine_threadsafe(host.close(), host.loop).result()
    page.close()
    return 0


def check_address(host: str, port: int) -> None:
    """Raises InvalidInput, which says why, if this process can't serve there."""
    where: dict[str, object] = {"host": host, "port": port}
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (OSError, UnicodeError) as error:
        raise InvalidInput("app.bad_host", **where, detail=error) from error
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(address)
        except PermissionError as error:
            raise InvalidInput("app.port_privileged", **where) from error
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            raise InvalidInput("app.port_taken" if taken else "app.bad_host", **where, detail=error) from error


if __name__ == "__main__":
    sys.exit(main())

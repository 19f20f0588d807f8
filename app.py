"""Serve the playground: read the configuration, build the page, launch it, close everything at the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading

from playground import logs
from playground.config import Config
from playground.domain.errors import PlaygroundError
from playground.i18n import say_message
from playground.private_files import private_folder, process_folder
from playground.runs.host import Host

# Seconds from the signal to the end of the process.
END_S = 4.5


def main() -> int:
    ended = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: _end(ended))
    try:
        config = Config.from_environment()
        logs.begin(config.log)
        private_folder(config.state, "PLAYGROUND_STATE")
        with process_folder(config.state, "uploads", "PLAYGROUND_STATE") as uploads:
            # Gradio's own folder is one for all users of the machine.
            os.environ["GRADIO_TEMP_DIR"] = str(uploads)
            serve(config, ended)
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)
        return error.exit_code
    return 0


def serve(config: Config, ended: threading.Event) -> None:
    """Serve the page until `ended`. Raises InvalidInput for an address that can't be used."""
    # Gradio reads where its files go when it is imported.
    from playground.ui.page import build
    from playground.ui.server.server import Server, listen, served

    sockets = listen(config.host, config.port)
    host = Host(config)
    server = Server(sockets, served(host, build(host)))
    print(f"The playground is at {server.url}", flush=True)
    threading.Thread(target=_tidy_up, args=[host], daemon=True).start()
    ended.wait()
    if host.loop is not None:
        asyncio.run_coroutine_threadsafe(host.close(), host.loop).result()
    server.close()


def _tidy_up(host: Host) -> None:
    """An older database may take long, and the page is usable without it."""
    try:
        host.tidy_up()
    except PlaygroundError as error:
        print(say_message(error), file=sys.stderr)


def _end(ended: threading.Event) -> None:
    """Begin the end, which takes at most END_S: whatever still hangs then is left behind. Engines and helpers end
    with this process."""
    if not ended.is_set():
        ended.set()
        last = threading.Timer(END_S, _exit, [1])
        last.daemon = True
        last.start()


def _exit(code: int) -> None:
    """Exit without waiting for threads: one may be in a call that never returns."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    _exit(main())

"""The guard: a small process between the playground and one engine. Standard library only, run by its path.

usage: guard.py GRACE_SECONDS -- COMMAND [ARG ...]

It starts the command in a session of its own and ends that whole session's processes when the command exits, when
its own standard input closes (the playground closed it, or died: a SIGKILL closes pipes too), or on SIGTERM.
It exits with the command's exit code, or 128 + the signal that ended it.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def _prctl(option: int, value: int) -> None:
    """Does nothing outside of Linux, where only the signals to the group remain."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _signal_group(pgid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signum)


def _children() -> list[int]:
    """Our direct children: as a subreaper we inherit every orphan of the engine."""
    try:
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as listing:
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return []


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    """SIGTERM to the group, SIGKILL after the grace period, then SIGKILL to whatever was orphaned to us."""
    _signal_group(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()
    while orphans := [pid for pid in _children() if pid != child.pid]:
        for pid in orphans:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def main(grace_s: float, command: list[str]) -> int:
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for signum in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(signum, lambda *_: None)
    # Should the guard itself be killed, the engine's server still gets SIGTERM and shuts down its workers.
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: _prctl(PR_SET_PDEATHSIG, signal.SIGTERM),
    )
    stop_requested = False
    while child.poll() is None and not stop_requested:
        ready, _, _ = select.select([0, wake_read], [], [], 1.0)
        if 0 in ready and not os.read(0, 1):
            stop_requested = True
        if wake_read in ready and any(number != signal.SIGCHLD for number in os.read(wake_read, 64)):
            stop_requested = True
    _end(child, grace_s)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[3:]))

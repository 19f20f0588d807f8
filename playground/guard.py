"""The guard: two small processes between the playground and one command. Standard library only, run by its path.

usage: guard.py GRACE_SECONDS LOG_BYTES REPORT -- COMMAND [ARG ...]

LOG_BYTES: standard output is a file that may have about so many bytes; of a longer one the middle is dropped.
0: it is no file.

The inner one starts the command in a session of its own and ends that whole session's processes when the command
exits, when its standard input closes (the playground closed it, or died: a SIGKILL closes pipes too), or on
SIGTERM. The outer one ends what is left if the inner one was killed; the inner one ends everything if the outer
one was. It exits with the command's exit code, or 128 + the signal that ended it.

REPORT is a descriptor, or -1: the command's process id is written there, which is also its session's, and it is
closed when both guards are gone. If both are killed at the same moment, the kernel kills the command itself, and
the playground the rest of its session. What remains then: processes that have left the session, and all but the
command itself if the playground is killed at that moment, too.
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
STOPPING = (signal.SIGTERM, signal.SIGINT)
LEFT_OUT = b"\n[playground] The log became too long: lines were left out here.\n"


def _prctl(option: int, value: int) -> None:
    """Does nothing outside of Linux, where only the signals to the group remain."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def die_with_parent(signum: int, parent: int) -> None:
    """Have the kernel send this process `signum` when its parent, which started it, ends. `parent`: its id."""
    _prctl(PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        # It ended before the kernel was asked.
        os.kill(os.getpid(), signum)


def _signal_group(pgid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, signum)


def _children() -> list[int]:
    """Our direct children: as a subreaper we inherit every orphan of the command."""
    try:
        with open(f"/proc/{os.getpid()}/task/{os.getpid()}/children") as listing:
            return [int(pid) for pid in listing.read().split()]
    except OSError:
        return []


def _end_children() -> None:
    """SIGKILL to our children, and to theirs as they become ours."""
    while children := _children():
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _end(child: subprocess.Popen[bytes], grace_s: float) -> None:
    """SIGTERM to the group, SIGKILL after the grace period or at a further SIGTERM to us, then SIGKILL to whatever
    was orphaned to us."""
    hurried: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, _: hurried.append(signum))
    _signal_group(child.pid, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while child.poll() is None and time.monotonic() < deadline and not hurried:
        time.sleep(0.02)
    _signal_group(child.pid, signal.SIGKILL)
    child.wait()
    _end_children()


def _terminate(pid: int) -> None:
    """SIGTERM, also to a process that was suspended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)


def _reap_orphans(child: int) -> None:
    """Those of the command that have ended: each takes a process id until then."""
    for pid in _children():
        if pid != child:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def _shorten_log(most: int) -> None:
    """Once the log is too long, drop its middle: its beginning stays, and the last lines, which may say why the
    command ends."""
    if most and (size := os.fstat(1).st_size) > most:
        with open("/proc/self/fd/1", "rb") as log:
            log.seek(size - most // 4)
            last = log.read(most)
        os.ftruncate(1, most // 2)
        os.write(1, LEFT_OUT + last)


def _inner(grace_s: float, log_bytes: int, report: int, command: list[str], outer: int) -> int:
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write)
    for signum in (signal.SIGCHLD, *STOPPING):
        signal.signal(signum, lambda *_: None)
    die_with_parent(signal.SIGTERM, outer)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    inner = os.getpid()
    try:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(signal.SIGKILL, inner),
        )
    except OSError as error:
        print(error, file=sys.stderr)
        return 127
    if report >= 0:
        os.write(report, b"%d\n" % child.pid)
    stop_requested = False
    while child.poll() is None and not stop_requested:
        ready, _, _ = select.select([0, wake_read], [], [], 1.0)
        if 0 in ready and not os.read(0, 1):
            stop_requested = True
        if wake_read in ready and any(number != signal.SIGCHLD for number in os.read(wake_read, 64)):
            stop_requested = True
        _reap_orphans(child.pid)
        _shorten_log(log_bytes)
    _end(child, grace_s)
    _shorten_log(log_bytes)
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def main(grace_s: float, log_bytes: int, report: int, command: list[str]) -> int:
    outer = os.getpid()
    # Blocked until each of the two knows what to do with them: a SIGTERM in between must not be lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    inner = os.fork()
    if inner == 0:
        os.setsid()
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        return _inner(grace_s, log_bytes, report, command, outer)
    for signum in STOPPING:
        signal.signal(signum, lambda *_: _terminate(inner))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    _, status = os.waitpid(inner, 0)
    _end_children()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[5:]))

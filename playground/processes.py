"""The only place that starts processes: guarded engines, the load driver, and short helper commands."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground import private_files
from playground.domain.limits import DEFAULTS
from playground.domain.message import Message
from playground.workers import abandoned

SECRET_NAME = re.compile(
    r"^(PLAYGROUND|AWS|AZURE)_|(API|ACCESS|ACCOUNT|PRIVATE|SIGNING|ENCRYPTION)_?KEY|TOKEN$|SECRET|PASSWORD|PASSWD"
    r"|_PWD$|PASSPHRASE|CREDENTIAL|_AUTH$|_AUTH_SOCK$|COOKIE|WEBHOOK",
    re.IGNORECASE,
)
SECRET_TEXT = re.compile(r"://[^/@\s]*:[^/@\s]+@|-----BEGIN [A-Z ]*PRIVATE KEY")
PROXY = re.compile(r"_proxy$", re.IGNORECASE)
GUARD = Path(__file__).with_name("guard.py")
# For a helper command to end by itself before it is killed.
HELPER_GRACE_S = 1.0
# For the driver to report what arrived once it was stopped.
DRIVER_GRACE_S = 3.0
# For a command on another machine to end its engines and report once it was stopped.
REMOTE_GRACE_S = 20.0
LINE_LIMIT = 32 * 1024 * 1024
POLL_S = 0.02
# For what killed guards left: a process that was killed and is not reaped stays in its session.
LEFT_S = 2.0
# How often a helper's job looks whether anybody still waits for it.
LOOK_S = 0.1

# The guards of all commands that were started and may still run.
_guards: weakref.WeakSet[subprocess.Popen[bytes] | asyncio.subprocess.Process] = weakref.WeakSet()


def signal_name(code: int) -> str | None:
    """Which signal ended a process with this exit code, by Python's convention (-n) or a shell's (128 + n)."""
    try:
        return signal.Signals(-code if code < 0 else code - 128).name
    except ValueError:
        return None


def exit_code_text(code: int) -> str:
    """The exit code, with the name of the signal that it stands for."""
    name = signal_name(code)
    return str(code) if name is None else f"{code}, {name}"


def ended_by_signal(code: int) -> Message | None:
    """The message for a process that a signal ended; None for one that exited by itself."""
    name = signal_name(code)
    return Message("host.ended_by_signal", {"signal": name}) if name else None


def _under_guard(command: Sequence[str], grace_s: float, log_bytes: int = 0, report: int = -1) -> list[str]:
    """The command under a guard: it ends, with all its children, when the guard's standard input does.

    Its standard output is a file of about `log_bytes` at most; 0: a pipe. `report`: see guard.py.
    """
    # -I -S: the guard needs the standard library alone, and starts in a few milliseconds.
    return [sys.executable, "-I", "-S", str(GUARD), str(grace_s), str(log_bytes), str(report), "--", *command]


def quiet_environment(kept: Sequence[str] = ()) -> dict[str, str]:
    """This process's environment for other people's programs: without telemetry, without the playground's own
    variables and without secrets. `kept` names those to keep all the same."""
    environment = {name: text for name, text in os.environ.items() if name in kept or not _is_secret(name, text)}
    return {**environment, "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


def _is_secret(name: str, text: str) -> bool:
    """Told by the name, or by a password in an address; a proxy's is needed."""
    return bool(SECRET_NAME.search(name) or (SECRET_TEXT.search(text) and not PROXY.search(name)))


@dataclass
class Guarded:
    """A command that cannot outlive this process. Its output goes to `log`."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        grace_s: float = 10.0,
        folder: Path | None = None,
        log_bytes: int = DEFAULTS.log_bytes,
    ) -> Guarded:
        """Start `command` in `folder` under a guard of its own. Raises OSError.

        `log` is a new file, of which the middle is dropped when it becomes longer than `log_bytes`.
        """
        reading, report = os.pipe()
        # It waits for the end of the pipe, whoever closes it.
        threading.Thread(target=_end_session, args=[reading], daemon=True).start()
        try:
            with private_files.fresh_file(log) as output:
                process = subprocess.Popen(
                    _under_guard(command, grace_s, log_bytes, report),
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=dict(environment),
                    cwd=folder,
                    start_new_session=True,
                    pass_fds=[report],
                )
        finally:
            os.close(report)
        _guards.add(process)
        return cls(process, log)

    def keep_on(self, cores: Iterable[int]) -> None:
        """Run it on these cores. Called at once: children take over what their parent has."""
        _keep_on(self.process.pid, cores)

    @property
    def exit_code(self) -> int | None:
        """The exit code; None while it runs; 128 + n if signal n ended it."""
        return self.process.poll()

    async def ended_within(self, seconds: float) -> bool:
        return await _within(seconds, lambda: self.exit_code is not None)

    def ask_to_end(self) -> None:
        """Close the guard's standard input: it ends the whole group, with SIGTERM first."""
        if self.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()

    async def end(self, within_s: float = math.inf) -> int:
        """Ask the guard to end, and wait until it has ended all processes. Returns the exit code.

        After `within_s` seconds the guard grants no more grace: it kills them.
        """
        self.ask_to_end()
        if not await self.ended_within(within_s):
            _hurry(self.process)
            await self.ended_within(math.inf)
        assert self.exit_code is not None
        return self.exit_code


def _end_session(reading: int) -> None:
    """Wait until a command's guards are gone, and kill what is left of its session: guards that were killed leave
    some."""
    with os.fdopen(reading, "rb") as report:
        session = report.readline()
        report.read()
    deadline = time.monotonic() + LEFT_S
    while session and time.monotonic() < deadline and (left := _members(int(session))):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def _members(session: int) -> list[int]:
    members = list[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry.name)) == session:
                members.append(int(entry.name))
    return members


def ask_all_to_end() -> None:
    """Ask every command that still runs to end, with SIGTERM first."""
    for guard in list(_guards):
        if guard.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                guard.stdin.close()


def _hurry(guard: subprocess.Popen[bytes] | asyncio.subprocess.Process) -> None:
    """SIGTERM, which a guard that was suspended gets, too."""
    guard.terminate()
    guard.send_signal(signal.SIGCONT)


async def end_all(within_s: float) -> None:
    """Wait until every command has ended; kill those that have not after so many seconds."""
    await _within(within_s, lambda: not any(map(_runs, list(_guards))))
    for guard in list(_guards):
        if _runs(guard):
            with contextlib.suppress(ProcessLookupError):
                # The first may have begun the grace period, the second ends it.
                _hurry(guard)


async def _within(seconds: float, holds: Callable[[], bool]) -> bool:
    """Wait until it holds, at most so many seconds."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(POLL_S)
    return True


def _runs(guard: subprocess.Popen[bytes] | asyncio.subprocess.Process) -> bool:
    if isinstance(guard, subprocess.Popen):
        guard.poll()
    return guard.returncode is None


async def run_lines(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> AsyncIterator[str]:
    """Run a helper command in `folder` and yield its output, stdout and stderr, line by line ('\\r' ends one too).

    Raises `subprocess.CalledProcessError` if it fails. Closing the iterator ends the command, and so does the end
    of this process.
    """
    process = await asyncio.create_subprocess_exec(
        *_under_guard(command, HELPER_GRACE_S),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
        cwd=folder,
        limit=LINE_LIMIT,
    )
    _guards.add(process)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pending = b""
        while block := await process.stdout.read(65536):
            *lines, pending = (pending + block).replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                if line.strip():
                    yield line.decode(errors="replace")
        if pending.strip():
            yield pending.decode(errors="replace")
        code = await process.wait()
    finally:
        process.stdin.close()
        await process.wait()
    if code != 0:
        raise subprocess.CalledProcessError(code, list(command))


def _keep_on(pid: int, cores: Iterable[int]) -> None:
    """Nearness only helps: where the system does not allow it, the process runs anywhere."""
    chosen = set(cores)
    if chosen:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(pid, chosen)


class DriverProcess:
    """The load driver as a child: a plan in, events out. The kernel kills it when this process dies."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._last_call: asyncio.TimerHandle | None = None

    @classmethod
    async def start(cls, plan: Mapping[str, object], cores: Iterable[int] = ()) -> DriverProcess:
        """`cores`: those of the processor that it runs on; none: any."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "playground.load.driver",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=LINE_LIMIT,
            cwd=Path(__file__).parents[1],
            start_new_session=True,
        )
        _keep_on(process.pid, cores)
        assert process.stdin is not None
        # Not waited for: a driver that does not read its plan must not keep `stop` from ending it.
        process.stdin.write(json.dumps(plan).encode() + b"\n")
        # Standard input stays open: its end tells the driver that this process is gone.
        return cls(process)

    async def events(self) -> AsyncIterator[dict[str, object]]:
        """Yield events until the driver's output ends. Raises `subprocess.CalledProcessError` if it failed."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            yield json.loads(line)
        code = await self._process.wait()
        if code != 0 and self._last_call is None:
            raise subprocess.CalledProcessError(code, "playground.load.driver")

    def stop(self) -> None:
        """Make the driver close its connections, report what arrived, and exit; kill it if that takes too long.

        This closes its input: a SIGTERM would kill a driver that has not yet installed its handler.
        """
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._last_call = asyncio.get_running_loop().call_later(DRIVER_GRACE_S, self._kill)

    async def close(self) -> None:
        """Kill the driver if it still runs."""
        if self._last_call is not None:
            self._last_call.cancel()
        self._kill()
        await self._process.wait()

    def _kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()


async def piped(
    command: str, text: str, stopping: asyncio.Event, within_s: float, most_bytes: int
) -> tuple[int, str, str]:
    """Give a shell's command this text, and return its exit code, output and errors.

    Its standard input stays open, since its end asks the command to stop: it ends with this process, once
    `stopping` is set, and after `within_s` seconds. A command that does not then stop soon is killed with its
    group. Raises TimeoutError, and ValueError for an output of more bytes.
    """
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdin.write(text.encode())
        reading = asyncio.gather(_all_of(process.stdout, most_bytes), _last_of(process.stderr), process.wait())
        stopped = asyncio.create_task(stopping.wait())
        try:
            either: list[asyncio.Future[Any]] = [reading, stopped]
            await asyncio.wait(either, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
            in_time = reading.done() or stopping.is_set()
            process.stdin.close()
            output, errors, code = await asyncio.wait_for(reading, REMOTE_GRACE_S)
        finally:
            stopped.cancel()
        if not in_time:
            raise TimeoutError
    finally:
        process.stdin.close()
        with contextlib.suppress(ProcessLookupError):
            # All that the shell started is in its group.
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())
    return code, output.decode(errors="replace"), errors.decode(errors="replace")


async def _all_of(stream: asyncio.StreamReader, most_bytes: int) -> bytes:
    content = bytearray()
    while block := await stream.read(1 << 16):
        content += block
        if len(content) > most_bytes:
            raise ValueError(most_bytes)
    return bytes(content)


async def _last_of(stream: asyncio.StreamReader) -> bytes:
    """The last kilobytes, while all is read."""
    content = b""
    while block := await stream.read(1 << 16):
        content = (content + block)[-4096:]
    return content


def run_json(
    command: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout_s: float,
) -> object:
    """Run a short command in `folder` and parse its last line of standard output as JSON. Blocking.

    It ends with this process, and once the job that called this is abandoned. Raises
    `subprocess.CalledProcessError` (with stderr), `subprocess.TimeoutExpired` or `json.JSONDecodeError`.
    """
    reading, lifeline = os.pipe()
    deadline = time.monotonic() + timeout_s
    try:
        process = subprocess.Popen(
            _under_guard(command, HELPER_GRACE_S),
            stdin=reading,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=folder,
        )
    except BaseException:
        os.close(lifeline)
        raise
    finally:
        os.close(reading)
    _guards.add(process)
    with process:
        try:
            while True:
                try:
                    output, errors = (
                        stream.decode(errors="replace") for stream in process.communicate(timeout=LOOK_S)
                    )
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() > deadline or abandoned():
                        raise
        finally:
            os.close(lifeline)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, list(command), output, errors)
    return json.loads(output.strip().rsplit("\n", 1)[-1])

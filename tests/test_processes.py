"""Nothing outlives the playground: the guard, tried with children that do not want to end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import eventually, gone

from playground.config import Config
from playground.processes import DriverProcess, Guarded, quiet_environment, run_json, run_lines

PYTHON = [sys.executable, "-I", "-S", "-c"]

# A server with three workers: one obeys, one is deaf to SIGTERM, one has its own session. argv[1] gets all pids;
# argv[2]: stay, exit or deaf (the server itself ignores SIGTERM).
STUBBORN = """
import os, signal, sys, time
def worker(prepare):
    read, write = os.pipe()
    if pid := os.fork():
        os.read(read, 1)
        return pid
    prepare()
    os.write(write, b"x")
    while True:
        time.sleep(60)
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
pids = [os.getpid()]
pids.append(worker(lambda: None))
pids.append(worker(lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)))
pids.append(worker(lambda: (os.setsid(), signal.signal(signal.SIGTERM, signal.SIG_IGN))))
with open(sys.argv[1] + ".new", "w") as file:
    file.write(" ".join(map(str, pids)))
os.rename(sys.argv[1] + ".new", sys.argv[1])
if sys.argv[2] == "exit":
    sys.exit(3)
while True:
    time.sleep(60)
"""


def guarded(folder: Path, code: str, *arguments: str, grace_s: float = 0.3) -> Guarded:
    return Guarded.start([*PYTHON, code, *arguments], os.environ, folder / "e.log", grace_s)


def pids_in(file: Path) -> list[int]:
    assert eventually(file.exists)
    pids = [int(pid) for pid in file.read_text().split()]
    assert len(pids) == 4
    return pids


def all_gone(pids: list[int]) -> bool:
    return all(gone(pid) for pid in pids)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", 0),
        ("import sys; sys.exit(3)", 3),
        ("import os; os.kill(os.getpid(), 9)", 137),
        ("import os; os.abort()", 134),
    ],
)
async def test_exit_code(tmp_path: Path, code: str, expected: int) -> None:
    process = guarded(tmp_path, code)
    assert await asyncio.to_thread(process.process.wait, 20) == expected
    assert process.exit_code == expected
    assert await process.end() == expected


async def test_output_goes_to_the_log_and_input_is_empty(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.environ['MARK'], flush=True); print('err', file=sys.stderr)"
    process = Guarded.start([*PYTHON, code], {"MARK": "mark"}, tmp_path / "e.log")
    assert await asyncio.to_thread(process.process.wait, 20) == 0
    assert process.log.read_text().split() == ["mark", "err"]


async def test_log_is_truncated(tmp_path: Path) -> None:
    log = tmp_path / "e.log"
    log.write_text("of an earlier engine")
    await Guarded.start([*PYTHON, ""], os.environ, log).end()
    assert log.read_text() == ""


async def test_a_log_that_becomes_too_long_loses_its_middle(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nprint('first', flush=True)\n"
        "while not Path(sys.argv[1]).exists(): print('x' * 1000, flush=True); time.sleep(0.001)\n"
        "print('last', flush=True)"
    )
    command = [*PYTHON, code, str(tmp_path / "stop")]
    process = Guarded.start(command, os.environ, tmp_path / "e.log", log_bytes=20_000)
    assert eventually(lambda: b"left out" in process.log.read_bytes())
    (tmp_path / "stop").touch()
    assert await process.ended_within(20)
    text = process.log.read_text()
    assert text.startswith("first\n")
    assert text.rstrip().endswith("last")


async def test_the_last_lines_of_a_long_log_stay(tmp_path: Path) -> None:
    """They say why the command ended, and the log becomes too long with them."""
    code = "print('first'); print('x\\n' * 1_000_000); print('the reason')"
    process = Guarded.start([*PYTHON, code], os.environ, tmp_path / "e.log", log_bytes=20_000)
    assert await process.ended_within(20)
    text = process.log.read_text()
    assert text.startswith("first\n")
    assert text.endswith("the reason\n")
    assert "left out" in text
    assert len(text) < 20_000


async def test_a_command_that_does_not_exist(tmp_path: Path) -> None:
    process = Guarded.start([str(tmp_path / "none")], os.environ, tmp_path / "e.log")
    assert await asyncio.to_thread(process.process.wait, 20) != 0
    assert "No such file" in process.log.read_text()


async def test_kindly_first(tmp_path: Path) -> None:
    """A server that shuts down by itself at SIGTERM is given the time for it."""
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit('bye'));"
        "open(sys.argv[1], 'w'); time.sleep(60)"
    )
    process = guarded(tmp_path, code, str(tmp_path / "up"), grace_s=20)
    assert eventually((tmp_path / "up").exists)
    assert process.exit_code is None
    assert await process.end() == 1
    assert "bye" in process.log.read_text()


async def test_end_takes_the_whole_family(tmp_path: Path) -> None:
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "stay")
    pids = pids_in(tmp_path / "pids")
    assert not any(gone(pid) for pid in pids)
    await process.end()
    # Not only asked to: `end` returns when all is gone.
    assert all_gone(pids)


async def test_workers_of_a_server_that_exits_are_ended(tmp_path: Path) -> None:
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "exit")
    assert await asyncio.to_thread(process.process.wait, 20) == 3
    assert all_gone(pids_in(tmp_path / "pids"))


async def test_sigterm_to_the_guard(tmp_path: Path) -> None:
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "stay")
    pids = pids_in(tmp_path / "pids")
    process.process.terminate()
    await asyncio.to_thread(process.process.wait, 20)
    assert all_gone(pids)


PARENT = """
import os, sys, time
from pathlib import Path
from playground.processes import Guarded
code, pids, log = sys.argv[1:]
process = Guarded.start([sys.executable, "-I", "-S", "-c", code, pids, "stay"], os.environ, Path(log), 0.3)
print(process.process.pid, flush=True)
time.sleep(60)
"""


def test_killed_parent_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, STUBBORN, str(tmp_path / "pids"), str(tmp_path / "e.log")]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    guard = int(parent.stdout.readline())
    pids = pids_in(tmp_path / "pids")
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    assert eventually(lambda: all_gone([guard, *pids]))


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize("killed", ["outer", "inner"])
async def test_killed_guard_takes_a_deaf_engine_along(tmp_path: Path, killed: str) -> None:
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "deaf")
    pids = pids_in(tmp_path / "pids")
    outer = process.process.pid
    (inner,) = children(outer)
    os.kill(outer if killed == "outer" else inner, signal.SIGKILL)
    assert await asyncio.to_thread(process.process.wait, 20) in (-signal.SIGKILL, 128 + signal.SIGKILL)
    assert eventually(lambda: all_gone([outer, inner, *pids]), within_s=20)


@pytest.mark.parametrize("suspended", [("outer",), ("inner",), ("outer", "inner"), ("command",)])
async def test_what_is_suspended_is_ended_all_the_same(tmp_path: Path, suspended: tuple[str, ...]) -> None:
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "deaf")
    pids = pids_in(tmp_path / "pids")
    outer = process.process.pid
    places = {"outer": outer, "inner": children(outer)[0], "command": pids[0]}
    for place in suspended:
        os.kill(places[place], signal.SIGSTOP)
    async with asyncio.timeout(20):
        await process.end(0.5)
    assert all_gone([*places.values(), *pids])


async def test_orphans_that_have_ended_leave_no_zombies(tmp_path: Path) -> None:
    code = """
import os, sys, time
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
open(sys.argv[1], "w").close()
time.sleep(60)
"""
    process = guarded(tmp_path, code, str(tmp_path / "forked"))
    assert eventually((tmp_path / "forked").exists)
    inner = children(process.process.pid)[0]
    assert eventually(lambda: len(children(inner)) == 1)
    await process.end()


async def test_both_guards_killed_take_the_session_along(tmp_path: Path) -> None:
    """The kernel ends the command, and this process the rest of its session."""
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "deaf")
    *family, in_its_own_session = pids_in(tmp_path / "pids")
    (inner,) = children(process.process.pid)
    # Suspended, it can't do its work when the other one goes.
    os.kill(process.process.pid, signal.SIGSTOP)
    os.kill(inner, signal.SIGKILL)
    process.process.kill()
    try:
        assert eventually(lambda: all_gone(family), within_s=20)
        assert not gone(in_its_own_session)
    finally:
        os.kill(in_its_own_session, signal.SIGKILL)


async def test_both_guards_killed_take_the_command_along(tmp_path: Path) -> None:
    """Without this process: the kernel alone."""
    process = guarded(tmp_path, STUBBORN, str(tmp_path / "pids"), "deaf")
    command, *_, in_its_own_session = pids_in(tmp_path / "pids")
    (inner,) = children(process.process.pid)
    os.kill(process.process.pid, signal.SIGSTOP)
    os.kill(inner, signal.SIGKILL)
    try:
        assert eventually(lambda: gone(command), within_s=20)
    finally:
        process.process.kill()
        os.kill(in_its_own_session, signal.SIGKILL)


HELPERS = """
import asyncio, sys, threading
from playground.processes import run_json, run_lines
code, folder = sys.argv[1:]
command = [sys.executable, "-I", "-S", "-c", code]
async def lines():
    async for _ in run_lines([*command, folder + "/lines", "deaf"]):
        pass
threading.Thread(target=run_json, args=([*command, folder + "/json", "deaf"],), kwargs={"timeout_s": 60}).start()
asyncio.run(lines())
"""


def test_killed_parent_leaves_no_helper(tmp_path: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", HELPERS, STUBBORN, str(tmp_path)])
    pids = [*pids_in(tmp_path / "lines"), *pids_in(tmp_path / "json")]
    parent.kill()
    parent.wait()
    assert eventually(lambda: all_gone(pids), within_s=20)


DRIVER = """
import asyncio, sys
from playground.processes import DriverProcess
async def main():
    endpoint = {"uds": sys.argv[1], "tls": False, "path": "/", "headers": {}}
    request = {"endpoint": 0, "body": {}}
    plan = {"mode": "race", "endpoints": [endpoint], "requests": [request], "idle_timeout_s": 60}
    plan["limits"] = {"event_bytes": 9, "response_bytes": 9, "load_bytes": 9, "output_tokens": 9}
    driver = await DriverProcess.start(plan)
    async for event in driver.events():
        print(driver._process.pid, flush=True)
asyncio.run(main())
"""


def test_killed_parent_leaves_no_driver(config: Config) -> None:
    """Not even one that does not see that its input has ended."""
    uds = str(config.state / "e.sock")
    with socket.create_server(uds, family=socket.AF_UNIX):
        parent = subprocess.Popen([sys.executable, "-c", DRIVER, uds], stdout=subprocess.PIPE)
        assert parent.stdout is not None
        driver = int(parent.stdout.readline())
        os.kill(driver, signal.SIGSTOP)
        parent.kill()
        parent.communicate()
        assert eventually(lambda: gone(driver), within_s=20)


# Helper commands


@pytest.mark.parametrize("program", ["exec sleep 60", "exit 3"])
async def test_a_driver_that_does_not_read_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The plan is larger than the pipe to it."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{program}\n")
    python.chmod(0o700)
    monkeypatch.setattr("playground.processes.sys.executable", str(python))
    async with asyncio.timeout(20):
        driver = await DriverProcess.start({"text": "x" * 1_000_000})
        if program == "exit 3":
            with pytest.raises(subprocess.CalledProcessError):
                await anext(driver.events())
        await driver.close()


async def test_lines_come_as_they_are_written() -> None:
    code = "import sys; sys.stdout.write('10%\\r20%\\r\\nå\\n\\nlast'); sys.stdout.flush()"
    lines = [line async for line in run_lines([*PYTHON, code], environment={"PYTHONIOENCODING": "utf-8"})]
    assert lines == ["10%", "20%", "å", "last"]


async def test_failing_helper_tells_its_lines_first() -> None:
    lines = run_lines([*PYTHON, "import sys; sys.exit('no room')"])
    assert await anext(lines) == "no room"
    with pytest.raises(subprocess.CalledProcessError) as caught:
        await anext(lines)
    assert caught.value.returncode == 1


async def test_leaving_a_helper_ends_it() -> None:
    lines = run_lines([*PYTHON, "import os, time; print(os.getpid(), flush=True); time.sleep(60)"])
    pid = int(await anext(lines))
    assert not gone(pid)
    await lines.aclose()
    assert gone(pid)


def test_json_is_the_last_line() -> None:
    assert run_json([*PYTHON, "print('noise'); print('[1]')"], timeout_s=20) == [1]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("import sys; sys.exit('why')", subprocess.CalledProcessError),
        ("print('{')", ValueError),
        ("import time; time.sleep(60)", subprocess.TimeoutExpired),
    ],
)
def test_json_that_does_not_come(code: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_json([*PYTHON, code], timeout_s=0.5 if "sleep" in code else 20)


# The environment of other people's programs


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(
            (name, "x")
            for name in ("OPENAI_API_KEY", "ANTHROPIC_APIKEY", "VLLM_API_KEY", "HF_TOKEN", "GITHUB_TOKEN")
        ),
        *((name, "x") for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AZURE_STORAGE_ACCOUNT_KEY", "PGPASSWORD")),
        *((name, "x") for name in ("DB_PASSWORD", "MYSQL_PWD", "CLIENT_SECRET", "GOOGLE_APPLICATION_CREDENTIALS")),
        *(
            (name, "x")
            for name in ("SSH_AUTH_SOCK", "PLAYGROUND_AUTH", "PLAYGROUND_ENDPOINT_KEYS", "wandb_api_key")
        ),
        ("DATABASE_URL", "postgres://me:hidden@db/x"),
        ("SIGNING", "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_secrets_stay_here(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    assert name not in quiet_environment()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("PATH", "/bin"),
        ("PWD", "/"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE", "1"),
        ("HF_HOME", "/h"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("https_proxy", "http://me:needed@proxy:8080"),
        ("ENDPOINT", "http://host:80/a@b"),
    ],
)
def test_what_programs_need(monkeypatch: pytest.MonkeyPatch, name: str, text: str) -> None:
    monkeypatch.setenv(name, text)
    assert quiet_environment()[name] == text


def test_a_secret_may_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "x")
    assert quiet_environment(kept=("HF_TOKEN",))["HF_TOKEN"] == "x"

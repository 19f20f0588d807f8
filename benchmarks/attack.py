"""What visitors, other websites, endpoints and other users of the machine may try, and whether it holds.

usage: python -m benchmarks.attack [NAME ...]      (all without names; about three minutes)

Stand-in engines, loopback only; each attack gets an app of its own. The exit code is 1 if one does not hold.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import secrets
import sqlite3
import stat
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import psutil

from benchmarks.common import app, folder, real_app, stand_in
from benchmarks.trials import Outcome, Probe, Trial, main, until
from benchmarks.visitor import API, Visitor

EVIL = "http://evil.example"
MIB = 1024**2
KEY = "sk-attack-0123456789abcdef"

# So many tokens are asked for by races of two endpoints, and not when an endpoint is tried before.
TOKENS = 77

# Writes an answer to the request, whose head and body these are.
Answer = Callable[[asyncio.StreamWriter, bytes], Awaitable[None]]


@contextlib.asynccontextmanager
async def visited(place: Path, **more: str) -> AsyncIterator[tuple[Visitor, str, int]]:
    """An app with one visitor; `more` are its environment variables. Yields visitor, address and process id."""
    with real_app(place, stand_in(place, rate=200) | more) as (process, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            yield visitor, url, process.pid


def runs(place: Path) -> list[tuple[str, str]]:
    """Ids and statuses in the history; none as long as there is no history."""
    with (
        contextlib.closing(sqlite3.connect(place / "history.db")) as db,
        contextlib.suppress(sqlite3.OperationalError),
    ):
        return db.execute("SELECT id, status FROM runs ORDER BY created_at").fetchall()
    return []


def refused(message: dict[str, object]) -> bool:
    """Whether the page answered that it can't."""
    said = json.dumps(message.get("output"))
    return 'class=\\"alert' in said or 'class=\\"bad' in said


# Other websites


async def foreign_host(place: Path) -> Outcome:
    async with visited(place) as (_, url, _), httpx.AsyncClient() as client:
        answers = [await client.get(url + path, headers={"Host": "evil.example"}) for path in ("/", "/config")]
        statuses = [answer.status_code for answer in answers]
        return Outcome(all(status in (400, 403, 421) for status in statuses), f"statuses {statuses}")


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


# Login


async def guesses(place: Path) -> Outcome:
    with real_app(place, stand_in(place, rate=200) | {"PLAYGROUND_AUTH": "user:right"}) as (_, url):
        async with httpx.AsyncClient(base_url=url, timeout=30) as client:
            looked_at, since = 0, time.monotonic()
            for number in range(200):
                answer = await client.post("/login", data={"username": "user", "password": f"wrong{number}"})
                looked_at += answer.status_code != 429
                if time.monotonic() - since > 20:
                    break
        return Outcome(looked_at <= 20, f"{looked_at} guesses looked at")


async def without_login(place: Path) -> Outcome:
    paths = ("/config", f"{API}/info", "/openapi.json", "/docs", "/redoc", "/monitoring")
    with real_app(place, stand_in(place, rate=200) | {"PLAYGROUND_AUTH": "user:right"}) as (_, url):
        async with httpx.AsyncClient(base_url=url) as client:
            open_paths = [path for path in paths if (await client.get(path)).is_success]
            answer = await client.post("/login", data={"username": "user", "password": "right"})
            cookies = answer.headers.get_list("set-cookie")
            loose = [cookie.split("=")[0] for cookie in cookies if "samesite=none" in cookie.lower()]
        seen = f"open: {', '.join(open_paths) or 'nothing'}; SameSite=None: {', '.join(loose) or 'none'}"
        return Outcome(answer.is_success and not open_paths and not loose, seen)


# Sizes


async def of_size(place: Path, attack: Callable[[Visitor, str], Awaitable[str]]) -> Outcome:
    """Held: it is refused, nobody else waits long, and the process does not grow by much."""
    async with visited(place) as (visitor, url, pid), Probe(url) as probe:
        before = psutil.Process(pid).memory_info().rss
        said = await attack(visitor, url)
        grown = (psutil.Process(pid).memory_info().rss - before) / MIB
        seen = f"{said}; others waited {probe.worst_s:.1f} s at most; {grown:.0f} MiB more"
        return Outcome(said.startswith("refused") and probe.worst_s < 3 and grown < 500, seen)


async def pressed(visitor: Visitor, button: str) -> str:
    try:
        message = await visitor.press(button)
    except httpx.HTTPStatusError as error:
        return f"refused with {error.response.status_code}"
    except httpx.TransportError as error:
        return f"refused ({type(error).__name__})"
    return "refused" if refused(message) else "accepted"


def field(button: str, **fields: object) -> Callable[[Path], Awaitable[Outcome]]:
    """The attack that fills these fields and presses the button."""

    async def attack(visitor: Visitor, _: str) -> str:
        visitor.fill(**fields)
        return await pressed(visitor, button)

    return lambda place: of_size(place, attack)


async def long_body(visitor: Visitor, _: str) -> str:
    body = b'{"data": ["' + b"x" * 30 * MIB + b'"], "fn_index": 0, "session_hash": "a"}'
    headers = {"Content-Type": "application/json"}
    try:
        answer = await visitor.client.post(f"{API}/queue/join", content=body, headers=headers)
    except httpx.TransportError:
        # It may close the connection before everything was sent.
        return "refused"
    return f"refused with {answer.status_code}" if answer.status_code == 413 else f"answered {answer.status_code}"


async def many_values(visitor: Visitor, _: str) -> str:
    """A body within the limit that is all empty lists: hundreds of times its size as objects."""
    body = b'{"fn_index": 0, "session_hash": "a", "data": [' + b"[]," * 2_500_000 + b"0]}"
    headers = {"Content-Type": "application/json"}
    answers = [await visitor.client.post(f"{API}/queue/join", content=body, headers=headers) for _ in range(5)]
    statuses = {answer.status_code for answer in answers}
    return f"refused with {statuses}" if statuses == {413} else f"answered {statuses}"


async def long_head(_: Visitor, url: str) -> str:
    """Fifty megabytes of short headers, which never end."""
    _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    sent = 0
    try:
        while sent < 50 * MIB:
            writer.write(b"a:b\r\n" * 200_000)
            await asyncio.wait_for(writer.drain(), 10)
            sent += MIB
    except ConnectionError:
        return "refused"
    except TimeoutError:
        pass
    finally:
        writer.close()
    return f"took {sent / MIB:.0f} MiB"


async def unread_answers(place: Path) -> Outcome:
    """A hundred and fifty pages that open a run of a long prompt, and never fetch it."""

    async def attack(visitor: Visitor, _: str) -> str:
        visitor.fill(asked_prompt="x y " * 900_000, asked_max_tokens=20)
        await visitor.press("race")
        await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        for _ in range(150):
            visitor.session = secrets.token_hex(6)
            await visitor.send("runs", details={"run": runs(place)[0][0]})
        await asyncio.sleep(5)
        return "refused or dropped"

    return await of_size(place, attack)


async def nested_upload(visitor: Visitor, _: str) -> str:
    """A file of prompts that is all brackets."""
    content = b"[" * 19 * 1000 * 1000
    answer = await visitor.client.post(f"{API}/upload", files={"files": ("prompts.json", content)})
    if not answer.is_success:
        return f"refused with {answer.status_code}"
    path = answer.json()[0]
    visitor.fill(measure_prompts="upload", measure_upload={"path": path, "meta": {"_type": "gradio.FileData"}})
    return "refused" if refused(await visitor.press("measure-upload", "upload")) else "accepted"


async def many_waiting(place: Path) -> Outcome:
    async with slow(place) as (visitor, url), Probe(url) as probe:
        await visitor.press("race")
        answers = [await pressed(visitor, "wait") for _ in range(60)]
        seen = f"{answers.count('accepted')} of {len(answers)} wait; others waited {probe.worst_s:.1f} s at most"
        return Outcome(answers[-1].startswith("refused") and probe.worst_s < 3, seen)


@contextlib.asynccontextmanager
async def slow(place: Path) -> AsyncIterator[tuple[Visitor, str]]:
    """An app whose races take minutes."""
    with app(place, rate=1) as (_, url):
        async with Visitor(url) as visitor:
            await visitor.arrive()
            yield visitor, url


# Endpoints


@contextlib.asynccontextmanager
async def endpoint(answer: Answer) -> AsyncIterator[str]:
    """A server whose answers to a race are written by `answer`, others as they should be. Yields its address."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                models = json.dumps({"data": [{"id": "model", "max_model_len": 4096}]}).encode()
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(models) + models)
            else:
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                body = await reader.readexactly(length)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                await (answer if json.loads(body).get("max_tokens") == TOKENS else steady)(writer, head + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def event(text: str, tokens: int, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": tokens, "total_tokens": 5 + tokens}
    return f"data: {json.dumps({'choices': [choice], 'usage': usage})}\n\n".encode()


async def steady(writer: asyncio.StreamWriter, _: bytes) -> None:
    for number in range(1, 21):
        writer.write(event("word ", number, "stop" if number == 20 else None))
    writer.write(b"data: [DONE]\n\n")


def attach(visitor: Visitor, *addresses: str) -> None:
    """Fill in the endpoints as the sides of a race."""
    for side, address in enumerate(addresses):
        visitor.fill(
            **{f"side{side}_attached": True, f"side{side}_base_url": address, f"side{side}_model": "model"}
        )
    visitor.fill(asked_max_tokens=TOKENS)


async def attached_run(place: Path, odd: Answer, **more: str) -> tuple[list[tuple[str | None, str]], float, float]:
    """A race of a steady endpoint and an odd one: problem and text of each side's answer, the longest wait of
    others (seconds), and by how much the app grew at most (MiB)."""
    async with (
        endpoint(steady) as good,
        endpoint(odd) as bad,
        visited(place, **more) as (visitor, url, pid),
        Probe(url) as probe,
    ):
        attach(visitor, good, bad)
        process, grown = psutil.Process(pid), 0.0
        before = process.memory_info().rss
        await visitor.send("race")

        def ended() -> bool:
            nonlocal grown
            grown = max(grown, (process.memory_info().rss - before) / MIB)
            return any(status != "running" for _, status in runs(place))

        await until(ended, within_s=60)
        # Opened as well, since figures are computed for whoever looks.
        with contextlib.suppress(httpx.HTTPError):
            await visitor.press("runs", details={"run": runs(place)[0][0]})
        ended()
        with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
            query = "SELECT problem, output_text FROM requests ORDER BY position"
            return db.execute(query).fetchall(), probe.worst_s, grown


async def absurd_usage(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(event("a ", 1) + event("b ", 200_000_000, "stop") + b"data: [DONE]\n\n")

    answers, waited, grown = await attached_run(place, odd)
    seen = f"{len(answers)} answers; others waited {waited:.1f} s at most; {grown:.0f} MiB more"
    return Outcome(len(answers) == 2 and answers[0][0] is None and waited < 3 and grown < 500, seen)


async def long_token(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, _: bytes) -> None:
        writer.write(event("x" * 20 * MIB, 1, "stop") + b"data: [DONE]\n\n")

    answers, waited, grown = await attached_run(place, odd)
    good = len(answers) == 2 and answers[0][0] is None and "word" in answers[0][1]
    seen = f"the other side {'went on' if good else 'was lost'}; others waited {waited:.1f} s at most"
    seen += f"; {grown:.0f} MiB more"
    return Outcome(good and waited < 3, seen)


async def echoed_key(place: Path) -> Outcome:
    async def odd(writer: asyncio.StreamWriter, head: bytes) -> None:
        key = KEY if KEY.encode() in head else "no key was sent"
        writer.write(event(f"Your key is {key}", 4, "stop") + b"data: [DONE]\n\n")

    async with endpoint(odd) as address:
        keys = {"PLAYGROUND_ENDPOINT_KEYS": f"{address}={KEY}"}
        async with visited(place, **keys) as (visitor, _, _):
            attach(visitor, address, address)
            await visitor.send("race")
            await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        with contextlib.closing(sqlite3.connect(place / "history.db")) as db:
            texts = db.execute("SELECT output_text FROM requests").fetchall()
    stored = any(KEY.encode() in file.read_bytes() for file in sorted(place.glob("history.db*")))  # noqa: ASYNC240
    seen = f"answers {[text[:30] for (text,) in texts]}; key in the history: {stored}"
    return Outcome(len(texts) == 2 and not stored, seen)


# Other users of the machine


async def prepared_folder(place: Path) -> Outcome:
    """Somebody else made the state folder first, open to all, with a link in it."""
    victim, state = place / "victim", place / "state"
    victim.write_text("precious")
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    (state / "holder.json").symlink_to(victim)
    environment = {**os.environ, **stand_in(place, rate=200), "PLAYGROUND_DB": str(place / "history.db")}
    environment |= {"PLAYGROUND_STATE": str(state), "PLAYGROUND_PORT": "0"}
    seen, kept = "", True
    with contextlib.suppress(SystemExit):
        async with visited(place) as (visitor, _, _):
            await visitor.press("race")
            seen = "a run started; "
    kept = victim.read_text() == "precious"
    return Outcome(
        kept and not seen, f"{seen or 'refused; '}the file behind the link was {'kept' if kept else 'OVERWRITTEN'}"
    )


async def open_files(place: Path) -> Outcome:
    os.umask(0o022)
    async with visited(place, PLAYGROUND_DB=str(place / "data" / "history.db")) as (visitor, _, _):
        await visitor.press("race")
        files = [place / "data", *(place / "data").iterdir(), place / "state", *(place / "state").rglob("*")]
        readable = [
            str(file.relative_to(place))
            for file in files
            if not file.is_symlink() and stat.S_IMODE(file.lstat().st_mode) & 0o077
        ]
    # What lies in a folder of 0700 is out of reach.
    reachable = [name for name in readable if name.split("/")[0] in readable or name == "data"]
    return Outcome(not reachable, f"open to others: {', '.join(reachable) or 'nothing'}")


# Engines


def is_engine(process: psutil.Process) -> bool:
    words = process.cmdline()
    return "--uds" in " ".join(words) and "--" not in words


async def secrets_of_the_host(place: Path) -> Outcome:
    async with visited(place, OPENAI_API_KEY=KEY, AWS_SECRET_ACCESS_KEY=KEY) as (visitor, _, pid):
        await visitor.press("race")
        await until(lambda: any(status != "running" for _, status in runs(place)), within_s=30)
        engines = [child for child in psutil.Process(pid).children(recursive=True) if is_engine(child)]
        leaks = [engine.pid for engine in engines if KEY in engine.environ().values()]
    return Outcome(bool(engines) and not leaks, f"{len(engines)} engines, {len(leaks)} with the host's keys")


FLAGS = (
    "--model other",
    "--model=other",
    "--trust-remote-code",
    "--trust_remote_code",
    "--trust-rem",
    "--speculative-config {}",
    "--speculative-config.method ngram",
    "--config file.yaml",
    "--middleware os.system",
    "--host 0.0.0.0",
    "--port 1",
    "--uds /tmp/x",
    "--api-key x",
    "--served-model-name x",
    "--ud /tmp/x",
)


async def owned_flags(place: Path) -> Outcome:
    passed = []
    async with visited(place, PLAYGROUND_EXTRA_FLAGS="1") as (visitor, _, _):
        for words in FLAGS:
            visitor.fill(side0_extra_flags=words)
            if await pressed(visitor, "race") == "accepted":
                passed.append(words)
                await until(lambda: all(status != "running" for _, status in runs(place)), within_s=30)
    return Outcome(not passed, f"passed: {', '.join(passed) or 'none'} of {len(FLAGS)}")


# Connections


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def half_open(place: Path) -> Outcome:
    # The app inherits the usual limit: only this process may have more.
    with app(place, rate=200) as (_, url), many_files():
        port = int(url.rpartition(":")[2])
        writers = []
        for _ in range(1100):
            with contextlib.suppress(OSError, TimeoutError):
                _, writer = await asyncio.wait_for(asyncio.open_connection("127.0.0.1", port), 2)
                writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
                writers.append(writer)
        since = time.monotonic()
        status: int | str
        try:
            async with httpx.AsyncClient(timeout=20) as client:
                status = (await client.get(url)).status_code
        except httpx.HTTPError as error:
            status = type(error).__name__
        took = time.monotonic() - since
        for writer in writers:
            writer.close()
    return Outcome(status == 200, f"{len(writers)} half-open; GET / answered {status} after {took:.1f} s")


ATTACKS = (
    Trial("foreign-host", "403 or 421", foreign_host),
    Trial("foreign-origin", "refused", foreign_origin),
    Trial("echoed-origin", "to none", echoed_origin),
    Trial("guesses", "at most 20", guesses),
    Trial("without-login", "nothing open, no SameSite=None", without_login),
    Trial("long-label", "refused", field("race", side0_label="x" * 5 * MIB)),
    Trial("long-prompt", "refused", field("race", asked_prompt="x" * 300 * MIB)),
    Trial("long-body", "413", lambda place: of_size(place, long_body)),
    Trial("many-values", "413", lambda place: of_size(place, many_values)),
    Trial("long-head", "refused", lambda place: of_size(place, long_head)),
    Trial("unread-answers", "dropped", unread_answers),
    Trial("nested-upload", "refused", lambda place: of_size(place, nested_upload)),
    Trial(
        "synthetic-prompts",
        "refused",
        field("measure", measure_prompts="synthetic", measure_input_tokens=1_000_000, measure_count=10_000),
    ),
    Trial(
        "data-parallel",
        "refused",
        field("race", side0_knobs=json.dumps({"data_parallel_size": "1000000"})),
    ),
    Trial("many-waiting", "refused in the end", many_waiting),
    Trial("absurd-usage", "the other side goes on", absurd_usage),
    Trial("long-token", "the other side goes on", long_token),
    Trial("echoed-key", "not stored", echoed_key),
    Trial("prepared-folder", "refused, nothing overwritten", prepared_folder),
    Trial("open-files", "nothing", open_files),
    Trial("secrets", "none", secrets_of_the_host),
    Trial("owned-flags", "none pass", owned_flags),
    Trial("half-open", "200", half_open),
)


if __name__ == "__main__":
    sys.exit(main(ATTACKS, folder))

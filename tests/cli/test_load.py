"""`python -m playground load`, and the probing before it, against endpoints of several kinds."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.fake_server import FakeServer, Reply, Script, Steady, payload, token
from support.load_command import command
from support.paced import paced
from support.schema import check
from support.waiting import until

from playground.cli.main import main
from playground.domain.errors import InvalidInput, WorkFailed
from playground.domain.spec.workload import ChatMessage, Sampling
from playground.load.capabilities import probe
from playground.load.endpoint import Capabilities, Endpoint

pytestmark = pytest.mark.slow

# The command


@pytest.mark.parametrize(("api", "suffix"), [("chat", ""), ("completions", "/v1/")])
async def test_json_document(api: str, suffix: str) -> None:
    async with paced() as seen:
        url = f"http://127.0.0.1:{seen.endpoint.port}"
        code, out, err = await command(
            f"--base-url={url}{suffix}",
            "--model=paced",
            f"--api={api}",
            "--concurrency=2",
            "--requests=4",
            "--output-tokens=9",
            "--prompt=你好",
            "--json",
        )
    assert code == 0, err
    document = check("load", json.loads(out))
    assert document["url"] == f"{url}/v1"
    assert document["model"] == "paced"
    assert document["profile"] == {"kind": "concurrency", "concurrency": 2, "requests": 4}
    figures = document["figures"]
    assert (figures["requests"], figures["output_tokens"], figures["errors"]) == (4, 36, {})
    assert figures["ttft_ms"]["n"] == 4
    assert figures["itl_ms"]["n"] == 32
    assert figures["total_tokens_per_s"] > figures["output_tokens_per_s"] > 0
    # Nobody knows whether somebody else's engine speculates.
    assert figures["tokens_per_step"] is figures["acceptance_rate"] is None
    assert figures["goodput_requests_per_s"] is None
    assert 0 < document["client_cpu_s"] < 60
    assert document["wall_s"] > 0
    body = seen.asked[-1][1]
    assert body["ignore_eos"] is True
    assert "你好" in json.dumps(body, ensure_ascii=False)


async def test_prompts_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text('{"prompt": "one"}\n{"prompt": "two", "max_tokens": 3}\n')
    async with paced() as seen:
        url = f"--base-url=127.0.0.1:{seen.endpoint.port}"
        code, _, err = await command(
            url, "--model=paced", f"--prompts={file}", "--requests=4", "--output-tokens=5"
        )
    assert code == 0, err
    # The first request is the probe's own.
    asked = sorted((body["messages"][-1]["content"], body["max_tokens"]) for _, body in seen.asked[1:])
    assert asked == [("one", 5), ("one", 5), ("two", 3), ("two", 3)]


async def test_text_summary() -> None:
    async with paced() as seen:
        code, out, _ = await command(f"--base-url=127.0.0.1:{seen.endpoint.port}", "--model=paced")
    assert code == 0
    assert "requests 8" in out
    assert all(name in out for name in ("TTFT", "TPOT", "ITL", "E2EL", "output tokens/s"))


async def test_the_key_is_sent_and_never_shown() -> None:
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        code, out, err = await command(f"--base-url=http://127.0.0.1:{port}", "--model=m", key="sk-secret")
    assert code == 1
    assert "authorization: bearer sk-secret" in heads[0].lower()
    assert "401" in err
    assert "sk-secret" not in out + err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--model=m"],
        ["--base-url=http://127.0.0.1:1"],
        ["--base-url=ftp://127.0.0.1", "--model=m"],
        ["--base-url=http://", "--model=m"],
        ["--base-url=http://127.0.0.1:99999", "--model=m"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--requests=0"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--concurrency=many"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--concurrency=100000"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--concurrency=0"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--requests=²"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--prompt= "],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--prompts=none.jsonl"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--prompts=chat", "--prompt=x"],
        ["--base-url=http://127.0.0.1:1", "--model=m", "--api=responses"],
    ],
)
def test_bad_input_is_exit_code_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(["load", *arguments, "--json"])
    except SystemExit as exit:
        code = exit.code
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err.strip()


async def test_more_tokens_than_the_context_holds() -> None:
    async with paced() as seen:
        url = f"http://127.0.0.1:{seen.endpoint.port}"
        code, _, err = await command(f"--base-url={url}", "--model=paced", "--output-tokens=8192")
    assert code == 2
    assert "8192" in err


async def test_nobody_there_is_exit_code_1() -> None:
    code, out, err = await command("--base-url=http://127.0.0.1:1", "--model=m", "--json")
    assert (code, out) == (1, "")
    assert "can't be reached" in err


async def test_every_request_failing_is_exit_code_1_with_a_document() -> None:
    """It answers the probe and then breaks: the document tells what happened."""
    good = Steady(rate=1000, tokens=2)
    count = 0

    async def script(reply: Reply) -> None:
        nonlocal count
        count += 1
        await good(reply) if count == 1 else reply.cut()

    async with FakeServer(script) as server:
        url = f"http://127.0.0.1:{server.port}"
        code, out, err = await command(f"--base-url={url}", "--model=playground", "--requests=2", "--json")
    assert code == 1
    assert check("load", json.loads(out))["figures"]["errors"] == {"cut": 2}
    assert "No request was answered" in err


async def test_a_driver_ended_by_a_signal_is_told_so() -> None:
    async with paced(first_ms=1, gap_ms=10) as seen:
        url = f"http://127.0.0.1:{seen.endpoint.port}"
        arguments = ["--base-url", url, "--model=paced", "--output-tokens=1000"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "playground", "load", *arguments, stderr=asyncio.subprocess.PIPE
        )
        await until(lambda: any(answer.tokens == 1000 and len(answer.written) > 3 for answer in seen.answers))
        [driver] = psutil.Process(process.pid).children()
        driver.send_signal(signal.SIGILL)
        _, err = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 1
    assert "SIGILL" in err.decode()
    assert "Traceback" not in err.decode()


async def test_sigint_keeps_what_came() -> None:
    async with paced(first_ms=1, gap_ms=10) as seen:
        url = f"http://127.0.0.1:{seen.endpoint.port}"
        arguments = ["--base-url", url, "--model=paced", "--output-tokens=1000", "--json"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "playground", "load", *arguments, stdout=asyncio.subprocess.PIPE
        )
        await until(lambda: any(answer.tokens == 1000 and len(answer.written) > 3 for answer in seen.answers))
        process.send_signal(2)
        out, _ = await asyncio.wait_for(process.communicate(), 30)
    figures = check("load", json.loads(out))["figures"]
    assert figures["errors"] == {"stopped": 1}
    assert figures["output_tokens"] > 0


# Probing


def strict(*known: str) -> Script:
    """A server that refuses every request with a field it does not know, as `transformers serve` does."""
    plain = {"model", "messages", "max_tokens", "temperature", "stream", *known}

    async def script(reply: Reply) -> None:
        if unknown := reply.body.keys() - plain:
            await reply.whole("422 Unprocessable Entity", json.dumps({"detail": f"Unexpected keys: {unknown}"}))
            return
        await reply.begin()
        for text in ("Hel", "lo"):
            await reply.event(token(text))
        await reply.event(payload({}, finish="length"))
        await reply.done()

    return script


async def found(script: Script) -> tuple[Capabilities, list[dict[str, Any]]]:
    async with FakeServer(script) as server:
        return await probe(server.endpoint), [reply.body for reply in server.replies]


async def test_probing_a_vllm_takes_one_request() -> None:
    capabilities, bodies = await found(Steady(rate=1000, tokens=2))
    assert capabilities == Capabilities(max_model_len=2048)
    assert len(bodies) == 1
    assert bodies[0]["max_tokens"] == 2


async def test_probing_a_strict_server() -> None:
    capabilities, bodies = await found(strict("seed"))
    assert capabilities == Capabilities(False, False, False, False, False, (), 2048)
    assert len(bodies) == 10


async def test_probing_finds_the_one_that_is_known() -> None:
    capabilities, _ = await found(strict("ignore_eos", "stream_options"))
    assert capabilities.ignore_eos
    assert capabilities.usage
    assert not capabilities.cache_salt
    # Accepted, and yet no usage came on the way: what counts is what came.
    assert not capabilities.running_usage


async def test_a_sampling_parameter_that_is_refused_is_left_out() -> None:
    async with FakeServer(strict("top_p")) as server:
        sampling = Sampling(top_p=0.9, top_k=5, stop=("x",))
        capabilities = await probe(server.endpoint, sampling)
    assert capabilities.refused == ("top_k", "seed", "stop")
    body = server.endpoint.knowing(capabilities).body((ChatMessage(role="user", content="hi"),), sampling)
    assert body.keys() == {"model", "messages", "max_tokens", "temperature", "top_p", "stream"}


@pytest.mark.parametrize("obeyed", [True, False])
async def test_a_salt_that_changes_nothing_is_found_out(obeyed: bool) -> None:
    """llama.cpp takes any field, and says how much of the prompt it had cached all the same."""
    seen: set[str] = set()

    async def script(reply: Reply) -> None:
        salt = reply.body["cache_salt"] if obeyed else ""
        cached = {"cached_tokens": 16 * (salt in seen)}
        seen.add(salt)
        await reply.begin()
        await reply.event(token("Hello", finish="length"))
        usage = {"prompt_tokens": 33, "completion_tokens": 2, "prompt_tokens_details": cached}
        await reply.event(payload(usage=usage))
        await reply.done()

    capabilities, bodies = await found(script)
    assert capabilities.cache_salt == obeyed
    assert len(bodies) == 2


async def test_a_strict_server_can_be_driven() -> None:
    async with FakeServer(strict()) as server:
        url = f"http://127.0.0.1:{server.port}"
        arguments = (f"--base-url={url}", "--model=playground", "--requests=2", "--output-tokens=5", "--json")
        code, out, err = await command(*arguments)
    assert code == 0, err
    figures = check("load", json.loads(out))["figures"]
    assert (figures["output_tokens"], figures["tpot_ms"], figures["itl_ms"]) == (None, None, None)
    assert figures["ttft_ms"]["n"] == 2


async def test_probing_what_refuses_everything() -> None:
    async def script(reply: Reply) -> None:
        await reply.whole("404 Not Found", '{"error": {"message": "no such model"}}')

    with pytest.raises(WorkFailed) as refusal:
        await found(script)
    assert refusal.value.message_id == "stream.http"
    assert "no such model" in str(refusal.value.params["detail"])


# Addresses


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("host:8000/v1/", "http://host:8000/v1"),
        ("https://api.deepseek.com", "https://api.deepseek.com/v1"),
        ("http://host:80/openai/v1", "http://host/openai/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
    ],
)
def test_base_urls(given: str, url: str) -> None:
    endpoint = Endpoint.from_url(given, "m")
    assert endpoint.url == url
    assert Endpoint.from_url(url, "m") == endpoint


@pytest.mark.parametrize("given", ["", "ftp://x", "http://", "http://user:pw@host", "http://host:port"])
def test_what_is_no_base_url(given: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        Endpoint.from_url(given, "m")
    assert refusal.value.message_id == "endpoint.bad_url"

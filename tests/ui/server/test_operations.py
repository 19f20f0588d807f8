"""What those who run the host ask of it."""

from __future__ import annotations

import json
import logging
import sys

import gradio as gr
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.races import raced

from playground.config import Config
from playground.logs import JsonLines
from playground.runs.host import Host
from playground.ui.server.server import served


def visitor(host: Host, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(served(host, gr.Blocks()), client=(address, 5000))
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7860")


async def test_health_and_metrics_need_no_login(config: Config) -> None:
    host = Host(config)
    object.__setattr__(config, "auth", ("user", "password"))
    async with visitor(host, "10.0.0.9") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/config")).status_code == 401
        # How busy the host is says this machine alone.
        assert (await client.get("/metrics")).status_code == 404


@pytest.mark.usefixtures("fake_runtime")
async def test_metrics_of_a_race(host: Host) -> None:
    async with visitor(host, "127.0.0.1") as client:
        await raced(host)
        logging.getLogger("playground.test").error("a line for the count")
        text = (await client.get("/metrics")).text
    values = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert values["playground_engines",] == 2
    assert values["playground_runs_total", "done"] == 1
    assert values["playground_errors_total",] == 1
    assert values["playground_busy",] == values["playground_waiting_runs",] == 0


def test_a_line_of_json_an_event() -> None:
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        failure = sys.exc_info()
    record = logging.LogRecord("a.b", logging.ERROR, "", 1, "run %s failed", ("20261201-101112-ab12",), failure)
    line = JsonLines().format(record)
    assert "\n" not in line
    event = json.loads(line)
    assert (event["level"], event["run"]) == ("ERROR", "20261201-101112-ab12")
    assert event["message"] == "run 20261201-101112-ab12 failed"
    assert "broken" in event["traceback"]

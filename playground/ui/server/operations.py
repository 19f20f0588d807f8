"""For those who run the host: `GET /healthz` says that it answers, `GET /metrics` what it does, for Prometheus."""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from playground.runs.host import Host

from .connection import Connection

HEALTH, METRICS = "/healthz", "/metrics"


class Errors(logging.Handler):
    """Counts what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += 1


class HostMetrics(Collector):
    """Read when they are asked for; none holds a prompt, a name or an address."""

    def __init__(self, host: Host, errors: Errors) -> None:
        self._host = host
        self._errors = errors

    def collect(self) -> Iterator[Metric]:
        host = self._host
        gauges = {
            "connections": ("Open connections", Connection.by_address.total()),
            "engines": ("Engines that run", len(host.pool.engines)),
            "busy": ("1 while a run uses the engines", int(host.pool.holder is not None)),
            "waiting_runs": ("Runs and sweeps that wait in line", host.waiting),
        }
        for name, (what, value) in gauges.items():
            yield GaugeMetricFamily(f"playground_{name}", what, value)
        ended = CounterMetricFamily("playground_runs", "Runs and sweeps that have ended", labels=["status"])
        for status, count in host.ended.items():
            ended.add_metric([status], count)
        yield ended
        yield CounterMetricFamily("playground_errors", "Errors in the log", self._errors.count)


def routes(host: Host) -> list[BaseRoute]:
    errors = Errors()
    logging.getLogger().addHandler(errors)
    registry = CollectorRegistry()
    registry.register(HostMetrics(host, errors))

    async def health(request: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def metrics(request: Request) -> Response:
        if not _is_local(request):
            return Response("", 404)
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return [Route(HEALTH, health), Route(METRICS, metrics)]


def _is_local(request: Request) -> bool:
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False

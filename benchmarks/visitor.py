"""A visitor of the page without a browser: presses its buttons by Gradio's own requests.

For what hundreds of visitors do at once, or what no browser would send.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import httpx

API = "/gradio_api"


class Visitor:
    """One browser session. An async context manager; `url` has no path.

    Fields and buttons go by their HTML ids. Fields that were never set have the page's initial values.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 30) -> None:
        self.session = secrets.token_hex(6)
        self.client = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout_s)
        self._values: dict[int, object] = {}
        self._ids: dict[str, int] = {}
        self._events: list[dict[str, Any]] = []

    async def __aenter__(self) -> Visitor:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.client.aclose()

    async def arrive(self) -> None:
        """Read what the page consists of. Raises httpx.HTTPStatusError where the page is refused."""
        config = (await self.client.get("/config")).raise_for_status().json()
        self._events = config["dependencies"]
        for component in config["components"]:
            self._values[component["id"]] = component["props"].get("value")
            # Our own HTML components may have their id inside.
            inner = re.search('id="([^"]+)"', component["props"].get("html_template") or "")
            if elem_id := component["props"].get("elem_id") or (inner and inner[1]):
                self._ids[elem_id] = component["id"]

    def again(self) -> Visitor:
        """Another browser session with the same page open."""
        other = Visitor(str(self.client.base_url), headers=self.client.headers)
        other._values, other._ids, other._events = dict(self._values), self._ids, self._events
        return other

    def fill(self, **fields: object) -> None:
        """Set fields by their HTML ids, with underscores for the dashes: `side0_label`, `asked_prompt`."""
        for name, value in fields.items():
            self._values[self._component(name)] = value

    def _component(self, name: str) -> int:
        by_words = {elem_id.replace("-", "_"): number for elem_id, number in self._ids.items()}
        return by_words[name.replace("-", "_")]

    async def press(
        self, button: str, event: str = "click", details: Mapping[str, object] | None = None
    ) -> dict[str, Any]:
        """Press a button and wait for what it answers, Gradio's `process_completed`. Fields take its values.

        Raises httpx.HTTPStatusError where the press itself is refused.
        """
        dependency, body = self._pressed(button, event, details)
        if dependency["queue"]:
            message = await self.answer(await self.send(button, event, details))
        else:
            output = (await self.client.post(f"{API}/run/predict", json=body)).raise_for_status().json()
            message = {"msg": "process_completed", "success": True, "output": output}
        self._take(dependency["outputs"], message["output"].get("data") or [])
        return message

    async def send(self, button: str, event: str = "click", details: Mapping[str, object] | None = None) -> str:
        """Press a button whose event goes into the queue. Returns the event's id, for `answer`."""
        _, body = self._pressed(button, event, details)
        answer = (await self.client.post(f"{API}/queue/join", json=body)).raise_for_status()
        return str(answer.json()["event_id"])

    def _pressed(
        self, button: str, event: str, details: Mapping[str, object] | None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The event that pressing it means, and the body of its request; not what a script does by itself."""
        target = [self._component(button), event]
        dependency = next(item for item in self._events if target in item["targets"] and item["backend_fn"])
        state = {"fn_index": dependency["id"], "session_hash": self.session, "trigger_id": target[0]}
        values = [self._values.get(number) for number in dependency["inputs"]]
        return dependency, {**state, "data": values, "event_data": details}

    def _take(self, outputs: list[int], values: list[Any]) -> None:
        for number, value in zip(outputs, values, strict=False):
            is_update = isinstance(value, dict) and value.get("__type__") == "update"
            if not is_update:
                self._values[number] = value
            elif "value" in value:
                self._values[number] = value["value"]

    async def answer(self, event_id: str) -> dict[str, Any]:
        """The message that completes the event; those of its progress are skipped."""
        params = {"session_hash": self.session}
        async with self.client.stream("GET", f"{API}/queue/data", params=params) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data:"):
                    continue
                message = json.loads(line.removeprefix("data:"))
                if message.get("event_id") == event_id and message["msg"] == "process_completed":
                    return dict(message)
        raise EOFError(f"no answer to {event_id}")

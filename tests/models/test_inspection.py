"""What is read of a model without its weights: from a folder, and from a small hub on loopback."""

from __future__ import annotations

import http.server
import json
import math
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.shapes import CONFIGS

from playground.config import Config
from playground.domain.errors import ModelUnavailable
from playground.domain.fit.weights import Tensor
from playground.i18n import LOCALES, say_message
from playground.models import inspection
from playground.models.tokenizer import token_text

TOKENIZER = {
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]},
    "added_tokens": [{"id": 3, "content": "<|end|>", "special": True}],
}
HEADER = {"w": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, "__metadata__": {"format": "pt"}}


def safetensors(header: dict[str, Any]) -> bytes:
    """The header alone: nothing that we do may need what follows."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text


def model_at(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIGS["7b"]))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


def test_a_folder(config: Config) -> None:
    model_at(config.models / "mine", model__safetensors=safetensors(HEADER))
    found = inspection.read(config, "mine", tokens=True)
    assert found.model is not None
    assert found.model.tensors == (Tensor("w", "BF16", 6),)
    assert found.model.shape.layers == 28
    assert found.tokens is not None
    assert found.tokens.ids == {"a": 0, "b": 1, "ab": 2, "<|end|>": 3}
    assert found.tokens.merges == ("a b",)
    assert found.tokens.chat_template is None
    assert inspection.read(config, "mine", tokens=False).tokens is None


def test_of_several_weight_files_those_of_the_index(config: Config) -> None:
    index = json.dumps({"weight_map": {"w": "one.safetensors", "v": "two.safetensors"}}).encode()
    other = {"v": {"dtype": "F32", "shape": [5], "data_offsets": [0, 20]}}
    folder = model_at(config.models / "mine", one__safetensors=safetensors(HEADER))
    (folder / "two.safetensors").write_bytes(safetensors(other))
    (folder / "consolidated.safetensors").write_bytes(safetensors(HEADER))
    (folder / "model.safetensors.index.json").write_bytes(index)
    found = inspection.read(config, "mine", tokens=False).model
    assert found is not None
    assert found.tensors == (Tensor("w", "BF16", 6), Tensor("v", "F32", 5))


def test_without_weights_or_tokenizer(config: Config) -> None:
    folder = model_at(config.models / "mine")
    (folder / "tokenizer.json").unlink()
    found = inspection.read(config, "mine", tokens=True)
    assert found.model is not None
    assert (found.model.tensors, found.tokens) == (None, None)


def test_the_chat_template_from_either_place(config: Config) -> None:
    folder = model_at(config.models / "mine", tokenizer_config__json=b'{"chat_template": "one"}')
    found = inspection.read(config, "mine", tokens=True).tokens
    assert found is not None
    assert found.chat_template == "one"
    (folder / "chat_template.jinja").write_text("other")
    found = inspection.read(config, "mine", tokens=True).tokens
    assert found is not None
    assert found.chat_template == "other"


def test_a_unigram_tokenizer(config: Config) -> None:
    folder = model_at(config.models / "mine")
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": [["x", 0.0], ["y", -1.5]]}}))
    found = inspection.read(config, "mine", tokens=True).tokens
    assert found is not None
    assert found.vocabulary == {"x": 0, "y": 1}


# Deeper than Python's parser goes.
NESTED = b'{"a":' * 100_000
NO_SHAPES = ("a", ["a"], [2] * 1_000_000, [2, "a"], [10**400], [2**40, 2**40], [math.nan], [1.5], [-1], 3)
NO_VOCABULARIES = (None, "ab", {}, [], {"a": [0]}, {"a": None}, [[["a"], 0.0]], [[1, 0.0]])


def refused(config: Config, name: str) -> ModelUnavailable:
    with pytest.raises(ModelUnavailable) as caught:
        inspection.read(config, name, tokens=True)
    for locale in LOCALES:
        assert say_message(caught.value, locale)
    return caught.value


@pytest.mark.parametrize(
    "broken",
    [
        {"config.json": b"[]"},
        {"config.json": b"{"},
        {"model.safetensors": b"no"},
        {"model.safetensors": struct.pack("<Q", 2**40)},
        {"model.safetensors": struct.pack("<Q", 9) + b'{"w": '},
        {"model.safetensors": struct.pack("<Q", 2) + b"[]"},
        {"model.safetensors.index.json": b"{}"},
        {"model.safetensors.index.json": b'{"weight_map": {"w": "absent.safetensors"}}'},
        {"tokenizer.json": b"{}"},
        {"config.json": NESTED},
        {"tokenizer.json": NESTED},
        {"model.safetensors": struct.pack("<Q", len(NESTED)) + NESTED},
        *({"model.safetensors": safetensors({"w": {"dtype": "F32", "shape": shape}})} for shape in NO_SHAPES),
        *({"tokenizer.json": json.dumps({"model": {"vocab": words}}).encode()} for words in NO_VOCABULARIES),
        {"tokenizer.json": b'{"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": [1], "content": "b"}]}'},
    ],
    ids=lambda broken: str(broken)[:80],
)
def test_a_broken_file_is_told(config: Config, broken: dict[str, bytes]) -> None:
    folder = model_at(config.models / "mine")
    for name, content in broken.items():
        (folder / name).write_bytes(content)
    assert refused(config, "mine").message_id == "preflight.unreadable"


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"])
def test_a_file_without_end_is_not_read(config: Config, name: str) -> None:
    folder = model_at(config.models / "mine")
    with (folder / name).open("ab") as file:
        file.truncate(70 * 1024**2)
    error = refused(config, "mine")
    assert error.params["detail"] == f"{name}: more than 64 MiB"


def test_a_layer_number_of_any_length(config: Config) -> None:
    name = f"model.layers.{'9' * 5000}.w"
    model_at(config.models / "mine", model__safetensors=safetensors({name: {"dtype": "BF16", "shape": [2, 3]}}))
    found = inspection.read(config, "mine", tokens=False).model
    assert found is not None
    assert found.parameters == 6


def test_a_config_that_is_no_decoders(config: Config) -> None:
    model_at(config.models / "mine", config__json=b"{}")
    assert inspection.read(config, "mine", tokens=False).model is None


@pytest.mark.parametrize(
    "more",
    [
        {"quantization_config": "fp8"},
        {"rope_scaling": ["yarn", 4]},
        {"rope_scaling": {"type": "linear", "factor": math.inf}},
        {"max_position_embeddings": "9" * 9, "rope_scaling": {"type": "linear", "factor": 10**400}},
        {"vocab_size": {}},
        {"vocab_size": math.inf},
        {"hidden_size": 1e308},
        {"hidden_size": 3},
        {"intermediate_size": math.nan},
        {"num_hidden_layers": 0},
        {"num_hidden_layers": -3},
        {"sliding_window": -1, "use_sliding_window": True},
    ],
    ids=lambda more: str(more)[:80],
)
def test_a_config_of_another_form_has_no_shape(config: Config, more: dict[str, Any]) -> None:
    model_at(config.models / "mine", config__json=json.dumps({**CONFIGS["7b"], **more}).encode())
    assert inspection.read(config, "mine", tokens=False).model is None


@pytest.mark.parametrize("name", ["owner/name", "nowhere", "/nowhere"])
def test_without_a_hub_it_cannot_be_known(config: Config, name: str) -> None:
    assert refused(config, name).message_id == "preflight.no_hub"


BREAKS = b"breaks"


def test_what_would_never_end_is_not_read(config: Config) -> None:
    """A pipe, and a terminal that an index leads to: a reader of either would wait for ever."""
    piped = model_at(config.models / "piped")
    os.mkfifo(piped / "model.safetensors")
    led_away = model_at(config.models / "led-away")
    (led_away / "model.safetensors.index.json").write_text('{"weight_map": {"w": "/dev/ptmx"}}')
    for name in ("piped", "led-away"):
        assert "not a plain file" in str(refused(config, name).params["detail"])


@pytest.mark.parametrize("content", [b"{}", b"\xff", b"[" * 100_000])
def test_a_broken_tokenizer_splits_no_text(config: Config, content: bytes) -> None:
    folder = model_at(config.models / "mine", tokenizer__json=content)
    assert token_text(folder).split("a", [0]) is None


def test_a_tokenizer_without_end_is_not_read(config: Config) -> None:
    folder = model_at(config.models / "mine")
    with (folder / "tokenizer.json").open("ab") as file:
        file.truncate(70 * 1024**2)
    assert token_text(folder).split("a", [0]) is None


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of a hub as one model takes. Weight files give only the range that is asked for."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    sent: list[tuple[str, int]]

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        path = self.path.split("?")[0]
        name = path.rsplit("/", 1)[-1]
        if path == "/":
            return self.reply(200, b"", body)
        if path.startswith("/api/models/"):
            found = {"id": "owner/name", "sha": "0" * 40, "siblings": [{"rfilename": key} for key in self.files]}
            return self.reply(200, json.dumps(found).encode(), body)
        if self.files.get(name) == BREAKS:
            self.close_connection = True
            return None
        if name not in self.files:
            return self.reply(404, b"", body, {"X-Error-Code": "EntryNotFound"})
        content = self.files[name]
        headers = {"ETag": f'"{name}"', "X-Repo-Commit": "0" * 40}
        if asked := self.headers.get("Range"):
            first, last = asked.removeprefix("bytes=").split("-")
            content = content[int(first) : int(last) + 1]
            return self.reply(206, content, body, headers)
        return self.reply(200, content, body, headers)

    def reply(self, status: int, content: bytes, body: bool, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if body:
            self.wfile.write(content)
            self.sent.append((self.path, len(content)))

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[tuple[str, type[Hub]]]:
    weights = safetensors(HEADER) + bytes(5_000_000)
    files = {"config.json": json.dumps(CONFIGS["7b"]).encode(), "tokenizer.json": json.dumps(TOKENIZER).encode()}
    handler = type("OneModel", (Hub,), {"files": {**files, "model.safetensors": weights}, "sent": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


ASK = """
from playground.models import inspection
from playground.config import Config
from playground.domain.errors import ModelUnavailable
try:
    found = inspection.read(Config.from_environment(), "owner/name", tokens=True)
    print(found.model and found.model.tensors, found.tokens and sorted(found.tokens.ids))
except ModelUnavailable as error:
    print(error.message_id)
"""


def ask(url: str, tmp_path: Path) -> str:
    """In a process of its own: the hub's client reads its address when it is imported."""
    environment = {**os.environ, "HF_ENDPOINT": url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0"}
    environment |= {"HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_hub_id_takes_no_weights(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    url, handler = hub
    assert ask(url, tmp_path) == ("(Tensor(name='w', dtype='BF16', elements=6),) ['<|end|>', 'a', 'ab', 'b']")
    assert sum(size for _, size in handler.sent) < 200_000


def test_a_hub_model_without_safetensors(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    url, handler = hub
    del handler.files["model.safetensors"]
    assert ask(url, tmp_path).startswith("None [")


@pytest.mark.parametrize(
    "content", [BREAKS, b"", struct.pack("<Q", 9) + b'{"w": ', struct.pack("<Q", 2**40)], ids=str
)
def test_a_hub_that_fails_midway(hub: tuple[str, type[Hub]], tmp_path: Path, content: bytes) -> None:
    url, handler = hub
    handler.files["model.safetensors"] = content
    assert ask(url, tmp_path) == "model.hub_failed"


def test_a_small_file_that_is_large(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    url, handler = hub
    handler.files["config.json"] = bytes(70 * 1024**2)
    assert ask(url, tmp_path) == "model.hub_failed"
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 70 * 1024**2


def test_a_hub_without_the_model(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    url, handler = hub
    handler.files.clear()
    assert ask(url, tmp_path) == "model.hub_failed"

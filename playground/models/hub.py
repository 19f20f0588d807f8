"""What is read from the hub, in a process of its own: a hub that answers slowly, or never, can then be given up.

usage: python -m playground.models.hub fetch NAME FOLDER
       python -m playground.models.hub look NAME CACHE [tokens]

Both print lines of JSON: how far it has got (`stage`, and `fraction` where it is known), then the outcome:
`reachable`, false where no hub answers; else `problem`, a message's id, with its `params`; else, of `look`,
`folder` and `tensors`.
"""

from __future__ import annotations

import contextlib
import json
import resource
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from huggingface_hub import HfApi, constants, errors, hf_hub_download, snapshot_download

from playground.domain.errors import ModelUnavailable

from . import fetch_errors
from .files import MOST_BYTES
from .folders import check_sha256

CONNECT_S = 5
REPORT_S = 0.5
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
MODEL_FILES = (".json", ".safetensors", ".jinja", ".model", ".txt", ".py")


def _say(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def _reachable() -> bool:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.head(constants.ENDPOINT, timeout=CONNECT_S, follow_redirects=True).is_success
    return False


def _fetch(name: str, folder: Path) -> None:
    """Download (the hub's client resumes by itself), then check each weight file against the hub's SHA-256."""
    info = HfApi().model_info(name, files_metadata=True)
    files = [item for item in info.siblings or () if item.rfilename.endswith(MODEL_FILES)]
    with _reporting(folder, sum(item.size or 0 for item in files)):
        patterns = [item.rfilename for item in files]
        snapshot_download(name, revision=info.sha, local_dir=folder, allow_patterns=patterns)
    _say(stage="checking")
    for item in files:
        if item.lfs is not None:
            check_sha256(folder / item.rfilename, item.lfs.sha256)
    shutil.rmtree(folder / ".cache", ignore_errors=True)


@contextlib.contextmanager
def _reporting(folder: Path, total: int) -> Iterator[None]:
    """Report now and then how much of the total has arrived in the folder."""
    over = threading.Event()

    def report() -> None:
        while True:
            _say(stage="downloading", fraction=min(_size(folder) / total, 1.0) if total else None)
            if over.wait(REPORT_S):
                return

    reporter = threading.Thread(target=report)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        # The hub's client renames what is complete.
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


def _look(name: str, cache: Path, *, tokens: bool) -> dict[str, Any]:
    """Read a few small files, and the first bytes of each weight file: the folder of the former, and each tensor's
    name, type and shape (None: no safetensors files)."""
    # A file that is said to be small may be as large as the disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (MOST_BYTES, MOST_BYTES))
    folder = Path(hf_hub_download(name, "config.json", cache_dir=cache)).parent
    for file in TOKENIZER_FILES if tokens else ():
        # Some models lack some of them.
        with contextlib.suppress(errors.EntryNotFoundError):
            hf_hub_download(name, file, cache_dir=cache)
    try:
        files = HfApi().get_safetensors_metadata(name).files_metadata.values()
    except errors.NotASafetensorsRepoError:
        return {"folder": str(folder), "tensors": None}
    headers = [entry for file in files for entry in file.tensors.items()]
    return {"folder": str(folder), "tensors": [(key, header.dtype, header.shape) for key, header in headers]}


def main(verb: str, name: str, place: str, *options: str) -> int:
    folder = Path(place)
    try:
        _say(stage="asking_hub")
        if not _reachable():
            _say(reachable=False)
            return 0
        with fetch_errors.translated(name, folder.parent):
            if verb == "fetch":
                _fetch(name, folder)
            else:
                _say(**_look(name, folder, tokens="tokens" in options))
    except ModelUnavailable as error:
        _say(problem=error.message_id, params=error.params)
    except errors.SafetensorsParsingError as error:
        _say(problem="model.hub_failed", params={"name": name, "detail": str(error).split("\n")[0]})
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""What can be known of a model without its weights: configuration, headers of its safetensors files, tokenizer.

From a folder, or for a hub id from the hub: a few small files and the first bytes of each weight file.
"""

from __future__ import annotations

import json
import math
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from playground.config import Config
from playground.domain.errors import ModelUnavailable
from playground.domain.fit.memory import Model
from playground.domain.fit.pair import Partner, Tokens
from playground.domain.fit.shape import ModelShape
from playground.domain.fit.weights import Tensor
from playground.processes import ended_by_signal, run_json

from .fetch import ROOT, hub_answer, hub_command, hub_is_off
from .files import MOST_BYTES, MOST_MIB, content, opened
from .folders import local_folder

# Elements of one tensor; the largest layers of today have a thousandth of that. Dimensions; they have five.
LARGEST_TENSOR, MOST_DIMENSIONS = 2**44, 16
# The errors that a file of unexpected form raises.
BROKEN = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
    struct.error,
)
# The longest that the hub may take for a few small files, in seconds.
HUB_S = 30


def read(config: Config, name: str, *, tokens: bool, ask_hub: bool = True) -> Partner:
    """What is known of a model; its tokenizer only where `tokens`, since that is the largest file. Without
    `ask_hub` only what is on this machine.

    Blocking. Raises ModelUnavailable where nothing can be known: no folder and no hub, or a broken file.
    """
    folder = local_folder(config, name)
    try:
        if folder is not None:
            return _partner(folder, _headers(folder), tokens)
        if not ask_hub:
            raise ModelUnavailable("preflight.not_here", name=name)
        return _from_hub(config, name, tokens)
    except BROKEN as error:
        detail = str(error).split("\n")[0]
        raise ModelUnavailable("preflight.unreadable", name=name, detail=detail) from error


def _from_hub(config: Config, name: str, tokens: bool) -> Partner:
    if name.count("/") != 1 or hub_is_off():
        raise ModelUnavailable("preflight.no_hub", name=name, folder=str(config.models))
    cache = config.models / ".cache" / "hub"
    try:
        command = hub_command("look", name, cache, *(["tokens"] if tokens else []))
        answer = hub_answer(run_json(command, folder=ROOT, timeout_s=HUB_S))
    except subprocess.TimeoutExpired as error:
        raise ModelUnavailable("model.hub_slow", name=name, seconds=HUB_S) from error
    except subprocess.CalledProcessError as error:
        detail = ended_by_signal(error.returncode) or error.stderr.strip().rsplit("\n", 1)[-1]
        raise ModelUnavailable("model.hub_failed", name=name, detail=detail) from error
    if answer.get("reachable") is False:
        raise ModelUnavailable("preflight.no_hub", name=name, folder=str(config.models))
    headers = answer["tensors"]
    tensors = None if headers is None else tuple(_tensor(*header) for header in headers)
    return _partner(Path(answer["folder"]), tensors, tokens)


def _partner(folder: Path, tensors: tuple[Tensor, ...] | None, tokens: bool) -> Partner:
    shape = ModelShape.of(_json(folder / "config.json"))
    return Partner(Model(shape, tensors) if shape is not None else None, _tokens(folder) if tokens else None)


def _headers(folder: Path) -> tuple[Tensor, ...] | None:
    """The tensors of all weight files: those of an index, else all; None where there are none."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        files = sorted({folder / name for name in _json(index)["weight_map"].values()})
    else:
        files = sorted(folder.glob("*.safetensors"))
    return tuple(tensor for file in files for tensor in _header(file)) or None


def _header(file: Path) -> list[Tensor]:
    """A safetensors file begins with its header's length, 8 bytes, little-endian; then the header, as JSON."""
    with opened(file) as stream:
        (length,) = struct.unpack("<Q", stream.read(8))
        if length > MOST_BYTES:
            raise ValueError(f"{file.name}: not a safetensors file, or its header has more than {MOST_MIB} MiB")
        header = json.loads(stream.read(length))
    return [
        _tensor(name, entry["dtype"], entry["shape"]) for name, entry in header.items() if name != "__metadata__"
    ]


def _tensor(name: str, dtype: object, shape: Sequence[object]) -> Tensor:
    sizes = [size for size in shape if isinstance(size, int) and 0 <= size <= LARGEST_TENSOR]
    if not len(sizes) == len(shape) <= MOST_DIMENSIONS or (elements := math.prod(sizes)) > LARGEST_TENSOR:
        raise ValueError(f"{name[:100]}: no shape of a tensor")
    return Tensor(name, str(dtype), elements)


def _tokens(folder: Path) -> Tokens | None:
    """The tokenizer's content; None without a tokenizer.json: other formats need their own libraries."""
    if not (folder / "tokenizer.json").is_file():
        return None
    document = _json(folder / "tokenizer.json")
    model = document["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):
        # A unigram model lists tokens with their scores.
        vocabulary = {token: number for number, (token, _) in enumerate(vocabulary)}
    merges = model.get("merges") or ()
    tokens = Tokens(
        vocabulary=vocabulary,
        merges=tuple(merge if isinstance(merge, str) else " ".join(merge) for merge in merges),
        added={
            token["content"]: (token["id"], bool(token.get("special")))
            for token in document.get("added_tokens") or ()
        },
        chat_template=_chat_template(folder),
    )
    ids = tokens.ids
    if not ids or not all(isinstance(token, str) and isinstance(number, int) for token, number in ids.items()):
        raise ValueError("tokenizer.json: no vocabulary of tokens and their ids")
    return tokens


def _chat_template(folder: Path) -> str | None:
    if (folder / "chat_template.jinja").is_file():
        return content(folder / "chat_template.jinja").decode()
    if not (folder / "tokenizer_config.json").is_file():
        return None
    template = _json(folder / "tokenizer_config.json").get("chat_template")
    return template if isinstance(template, str) else None


def _json(file: Path) -> Mapping[str, Any]:
    document = json.loads(content(file).decode())
    if not isinstance(document, dict):
        raise ValueError(f"{file.name}: not an object")
    return document

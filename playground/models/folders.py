"""A model's name -> the folder that it stands for on this machine.

A name is a folder, the name of one in the models folder or of a draft that comes with the playground, or a hub id.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from playground import presets
from playground.config import Config
from playground.domain.errors import InvalidInput, ModelUnavailable

EMBEDDED = "HuggingFaceTB/SmolLM2-135M-Instruct"
EMBEDDED_FOLDER = EMBEDDED.split("/")[1]
DRAFTS = presets.FOLDER / "drafts"


def local_folder(config: Config, name: str) -> Path | None:
    """The folder of a model that is on this machine; None if it has to be fetched."""
    try:
        path = Path(name).expanduser()
    except RuntimeError:
        # "~somebody" who does not exist.
        return None
    candidates = [config.models / name, config.models / name.replace("/", "--"), DRAFTS / name]
    if name == EMBEDDED:
        candidates.append(config.models / path.name)
    if path.is_absolute() or name.startswith((".", "~")):
        candidates = [path]
    elif name.count("/") != 1:
        candidates.append(path)
    return next((folder for folder in candidates if _holds_model(folder)), None)


def _holds_model(folder: Path) -> bool:
    # The path may be too long for the system, or unreadable.
    with contextlib.suppress(OSError):
        return (folder / "config.json").is_file()
    return False


def portable(config: Config, name: str) -> str:
    """A name by which any vLLM finds the model: its hub id, else the folder's whole path."""
    if name == EMBEDDED_FOLDER:
        return EMBEDDED
    if name.count("/") == 1 and not name.startswith(("/", ".", "~")):
        return name
    folder = local_folder(config, name)
    return name if folder is None else str(folder.absolute())


def known(config: Config) -> list[str]:
    """Names to offer: the embedded default, and every folder in the models folder."""
    names = {EMBEDDED, *(folder.name for folder in DRAFTS.iterdir())}
    if config.models.is_dir():
        for folder in config.models.iterdir():
            if (folder / "config.json").is_file() and folder.name != EMBEDDED_FOLDER:
                names.add(folder.name.replace("--", "/"))
    allowed = names if not config.allowed_models else names & set(config.allowed_models)
    return sorted(allowed | set(config.allowed_models))


def check_allowed(config: Config, name: str) -> None:
    """Raises InvalidInput for a model that the host does not allow."""
    if config.allowed_models and name not in config.allowed_models:
        raise InvalidInput("model.not_allowed", name=name, allowed=", ".join(config.allowed_models))


def check_name(config: Config, name: str) -> None:
    """Raises InvalidInput for a name that is no model on this machine and no hub id either."""
    if local_folder(config, name) is not None or name == EMBEDDED_FOLDER:
        return
    if name.startswith(("/", ".", "~")) or name.count("/") > 1:
        raise InvalidInput("model.no_such_folder", name=name)
    if name.count("/") != 1:
        raise InvalidInput("model.unknown", name=name, folder=str(config.models), known=", ".join(known(config)))


def check_sha256(path: Path, sha256: str) -> None:
    """Raises ModelUnavailable, and deletes the file, if its content is not what this hash is of."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        path.unlink()
        raise ModelUnavailable("model.checksum", file=path.name)

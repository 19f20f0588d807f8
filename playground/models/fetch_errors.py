"""Translates the errors of a fetch into one sentence each."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from playground.domain.errors import ModelUnavailable
from playground.processes import ended_by_signal

FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def translated(name: str, folder: Path) -> Iterator[None]:
    """Turns what the hub's client and the file system raise into ModelUnavailable."""
    from huggingface_hub import errors

    # When a connection breaks, the hub's client lets errors of its own HTTP library through.
    dropped = [kind for kind in errors.HfHubHTTPError.__mro__ if kind.__name__ == "HTTPError"]
    foreign: tuple[type[Exception], ...] = (OSError, errors.HFValidationError, *dropped)
    try:
        yield
    except errors.GatedRepoError as error:
        raise ModelUnavailable("model.gated", name=name) from error
    except errors.RepositoryNotFoundError as error:
        raise ModelUnavailable("model.hub_missing", name=name) from error
    except foreign as error:
        if _full(error):
            raise _disk_full(folder) from error
        raise ModelUnavailable("model.hub_failed", name=name, detail=str(error).split("\n")[0]) from error


def of_step(
    message_id: str, lines: Sequence[str], exit_code: int, folder: Path, **params: object
) -> ModelUnavailable:
    """The error for a helper command that failed with these last lines."""
    if any("No space left on device" in line for line in lines):
        return _disk_full(folder)
    return ModelUnavailable(message_id, detail=ended_by_signal(exit_code) or " ".join(lines[-1:]), **params)


def _disk_full(folder: Path) -> ModelUnavailable:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    return ModelUnavailable("model.disk_full", folder=str(folder), free_gib=free / 1024**3)


def _full(error: BaseException | None) -> bool:
    """Whether a full disk caused the error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        error = error.__cause__ or error.__context__
    return False

"""The page. Only this package imports gradio."""

from __future__ import annotations

import inspect
from typing import NoReturn


def _without_stubs() -> None:
    """Import gradio, a third faster: it parses its components to write stub files for editors, which it came with,
    and leaves out a class whose file is not known."""

    def no_file(_: object) -> NoReturn:
        raise OSError

    file_of = inspect.getfile
    inspect.getfile = no_file  # type: ignore[assignment]
    try:
        import gradio  # noqa: F401
    finally:
        inspect.getfile = file_of


_without_stubs()

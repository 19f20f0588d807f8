"""What Gradio keeps for each open page.

Its own sessions begin with a description of every component, for links to a page's state, which are closed here.
Making one takes the event loop tens of milliseconds: eighty new visitors kept everybody waiting for seconds.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import gradio as gr
from fastapi import HTTPException
from gradio.state_holder import SessionState, StateHolder

# Characters of a page's own id, which Gradio keeps for hours. Its pages take eleven.
LONGEST_ID = 64


class _Session(SessionState):
    """A session without these descriptions."""

    def __init__(self, page: gr.Blocks) -> None:
        super().__init__(cast(gr.Blocks, SimpleNamespace(default_config=page.default_config, blocks={})))

    def _update_config(self, key: int) -> None:
        pass

    def _update_value_in_config(self, key: int, value: Any) -> None:
        pass


class Sessions(StateHolder):
    def __init__(self, page: gr.Blocks) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.set_blocks(page)

    def __getitem__(self, session_id: str) -> SessionState:
        if len(session_id) > LONGEST_ID:
            raise HTTPException(400, "bad session")
        if session_id not in self.session_data:
            self.session_data[session_id] = _Session(self.blocks)
        return super().__getitem__(session_id)

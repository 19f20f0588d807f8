"""What other users of the machine may prepare, and read."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from benchmarks.trials import Outcome, Trial

from .visits import visited


async def prepared_folder(place: Path) -> Outcome:
    """Somebody else made the state folder first, open to all, with a link in it."""
    victim, state = place / "victim", place / "state"
    victim.write_text("precious")
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    (state / "holder.json").symlink_to(victim)
    seen = ""
    with contextlib.suppress(SystemExit):
        async with visited(place) as (visitor, _, _):
            await visitor.press("race")
            seen = "a run started; "
    kept = victim.read_text() == "precious"
    return Outcome(
        kept and not seen, f"{seen or 'refused; '}the file behind the link was {'kept' if kept else 'OVERWRITTEN'}"
    )


async def open_files(place: Path) -> Outcome:
    os.umask(0o022)
    async with visited(place, PLAYGROUND_DB=str(place / "data" / "history.db")) as (visitor, _, _):
        await visitor.press("race")
        files = [place / "data", *(place / "data").iterdir(), place / "state", *(place / "state").rglob("*")]
        readable = [
            str(file.relative_to(place))
            for file in files
            if not file.is_symlink() and stat.S_IMODE(file.lstat().st_mode) & 0o077
        ]
    # What lies in a folder of 0700 is out of reach.
    reachable = [name for name in readable if name.split("/")[0] in readable or name == "data"]
    return Outcome(not reachable, f"open to others: {', '.join(reachable) or 'nothing'}")


USERS = (
    Trial("prepared-folder", "refused, nothing overwritten", prepared_folder),
    Trial("open-files", "nothing", open_files),
)

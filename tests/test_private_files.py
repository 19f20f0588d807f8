"""Other users of the machine: what they put where we write is neither used nor followed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.paths import ROOT

from playground import private_files
from playground.config import Config
from playground.domain.errors import InvalidInput
from playground.engine import runtime
from playground.engine.pool import Holder, Pool
from playground.i18n import LOCALES, say_message
from playground.processes import Guarded
from playground.runs.host import Host
from playground.store import History

VARIABLE = "PLAYGROUND_STATE"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(InvalidInput) as caught:
        action()
    for locale in LOCALES:
        assert str(caught.value.params["variable"]) in say_message(caught.value, locale)
    return caught.value.message_id


def linked(path: Path, target: Path) -> None:
    target.mkdir()
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("prepare", "message_id"),
    [
        (lambda path: linked(path, path.with_name("elsewhere")), "private.no_folder"),
        (lambda path: path.symlink_to("nowhere"), "private.no_folder"),
        (lambda path: path.write_text(""), "private.no_folder"),
        (lambda path: path.mkdir(), "private.open"),
        (lambda path: (path.mkdir(), path.chmod(0o777)), "private.open"),
        (lambda path: (path.mkdir(), path.chmod(0o710)), "private.open"),
    ],
)
def test_a_folder_that_is_not_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Path], Any], message_id: str
) -> None:
    """Everything that uses the state folder refuses it, and writes nothing there."""
    state = tmp_path / "state"
    prepare(state)
    config = Config(db=tmp_path / "db" / "h.db", models=tmp_path / "models", state=state)
    monkeypatch.setattr(runtime, "_ask", lambda *_: pytest.fail("asked"))
    assert refusal(lambda: private_files.private_folder(state, VARIABLE)) == message_id
    assert refusal(lambda: Host(config)) == message_id
    assert refusal(lambda: runtime._parser(config, Path(sys.executable), "1")) == message_id
    if state.is_dir():
        assert not list(state.iterdir())


def test_a_folder_of_somebody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert refusal(lambda: private_files.private_folder(tmp_path / "state", VARIABLE)) == "private.foreign"


def test_a_folder_of_our_own(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        private_files.private_folder(folder, VARIABLE)
        assert mode(folder) == 0o700


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(lambda: private_files.private_folder(tmp_path / "file" / "s", VARIABLE)) == "private.unusable"


def test_a_folder_that_cannot_be_written() -> None:
    assert refusal(lambda: private_files.check_space(Path("/proc"), VARIABLE)) == "private.unusable"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: Path("/dev/full").open("wb"))  # noqa: SIM115
    assert refusal(lambda: private_files.check_space(tmp_path, VARIABLE)) == "private.unusable"


def test_links_are_replaced_and_not_written_through(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for kind in (os.symlink, os.link):
        for write in (
            lambda path: private_files.write_whole(path, "text"),
            lambda path: private_files.fresh_file(path).close(),
        ):
            place = tmp_path / "place"
            kind(victim, place)
            write(place)
            assert victim.read_text() == "precious"
            assert not place.is_symlink()
            assert mode(place) == 0o600
            place.unlink()


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with pytest.raises(IsADirectoryError):
        private_files.write_whole(tmp_path / "place", "text")
    assert [entry.name for entry in tmp_path.iterdir()] == ["place"]


async def test_a_log_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "e.log").symlink_to(tmp_path / "victim")
    await Guarded.start([sys.executable, "-c", "print('x')"], os.environ, tmp_path / "e.log").end()
    assert (tmp_path / "victim").read_text() == "precious"
    assert mode(tmp_path / "e.log") == 0o600


async def test_the_holder_is_not_written_through_a_link(config: Config, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (config.state / "holder.json").symlink_to(tmp_path / "victim")
    async with Pool(config).lease(Holder("a race", "here", "now")):
        pass
    assert (tmp_path / "victim").read_text() == "precious"
    assert "a race" in (config.state / "holder.json").read_text()


# The database


def test_a_new_database(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.db"
    history = History(path)
    with history._file.writing():
        files = list(path.parent.iterdir())
        assert len(files) > 1, "SQLite's own files are among them"
        assert {mode(file) for file in files} == {0o600}
    assert mode(path.parent) == 0o700


def test_a_database_that_others_could_read(tmp_path: Path) -> None:
    path = tmp_path / "data" / "history.db"
    History(path).open()
    path.parent.chmod(0o755)
    for suffix in ("", "-wal", "-shm"):
        file = path.with_name(path.name + suffix)
        file.touch()
        file.chmod(0o644)
    History(path).open()
    assert mode(path.parent) == 0o700
    assert {mode(file) for file in path.parent.iterdir()} == {0o600}


def test_a_database_in_a_folder_with_other_things(tmp_path: Path) -> None:
    folder = tmp_path / "home"
    folder.mkdir()
    folder.chmod(0o755)
    (folder / "notes").write_text("")
    History(folder / "history.db").open()
    assert mode(folder) == 0o755
    assert mode(folder / "history.db") == 0o600


def test_a_database_where_everybody_may_make_files(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    assert refusal(lambda: History(folder / "history.db").open()) == "private.shared"
    assert not list(folder.iterdir())


def test_a_database_that_is_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "history.db").symlink_to(tmp_path / "victim")
    assert refusal(lambda: History(folder / "history.db").open()) == "private.no_file"
    assert not (tmp_path / "victim").exists()


# Folders of one process


def ended_process() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def test_a_folder_of_one_process(tmp_path: Path) -> None:
    leftover = tmp_path / f"uploads-{ended_process()}"
    of_another = tmp_path / f"uploads-{os.getppid()}"
    for folder in (leftover, of_another):
        folder.mkdir()
        (folder / "file").write_text("x")
    with private_files.process_folder(tmp_path, "uploads", VARIABLE) as folder:
        assert mode(folder) == 0o700
        (folder / "file").write_text("x")
        assert not leftover.exists()
    assert [entry.name for entry in tmp_path.iterdir()] == [of_another.name]


@pytest.mark.parametrize("command", [["app.py"], ["-m", "playground", "compare", "smollm2-ngram"]])
def test_a_sentence_and_no_traceback(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    environment = {**os.environ, "PLAYGROUND_STATE": str(tmp_path / "link")}
    ended = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "PLAYGROUND_STATE" in ended.stderr


def test_gradio_has_a_folder_of_our_own(config: Config) -> None:
    """Of the process, under the state folder, and gone with it."""
    code = (
        "import app, os, threading\n"
        "app.serve = lambda config, ended: print(os.environ['GRADIO_TEMP_DIR'], flush=True)\n"
        "app.main()"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    folder = Path(printed.stdout.strip())
    assert folder.parent == config.state
    assert not folder.exists()

"""How two workers share the tests, and how a test gets the machine for itself.

The tests of a file stay on one worker, so that its fixtures are made once. All tests with engines form one group:
they share engines, and two cores bear no second pair. So do those with other people's servers, and those with a
browser. These groups are the longest and come first; tests marked `alone` are the last of
their files and never run beside another.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from support.paths import ROOT

GROUPS = ("engine", "foreign", "browser")
ORDER = (*GROUPS, "simulation", None, "alone")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)


class ByGroup(LoadScopeScheduling):
    """xdist's own groups by marker are not seen by this version of pytest."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid.split("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    return ByGroup(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """With its fixtures, also those that are set up or torn down for several tests."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return (yield)
    with _turn(Path(tempfile.gettempdir()) / f"tests-{run}", alone=item.get_closest_marker("alone") is not None):
        return (yield)


@cache
def _group(file: str) -> str:
    """A file that has tests of such a kind is in its group as a whole."""
    text = (ROOT / file).read_text(encoding="utf-8")
    return next((kind for kind in GROUPS if f"pytest.mark.{kind}" in text), file)


def _place(item: pytest.Item) -> int:
    """Stable: tests of one kind keep the order of their files."""
    if item.get_closest_marker("alone"):
        return ORDER.index("alone")
    return ORDER.index(next((kind for kind in ORDER if kind and item.get_closest_marker(kind)), None))


@contextmanager
def _turn(path: Path, alone: bool) -> Iterator[None]:
    """Workers are processes: a lock that tests share, and that a test which has to be alone holds for itself.

    Whoever waits for it holds the door, or the other workers' tests could follow one another for ever.
    """
    with path.open("w") as lock:
        with path.with_suffix(".door").open("w") as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield

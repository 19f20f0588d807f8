"""How two workers share the tests, and how a test gets the machine for itself.

The tests of a file stay on one worker, so that its fixtures are made once. All tests with engines form one group:
they share engines, and two cores bear no second pair. So do those with other people's servers, and those with a
browser. These groups are the longest and come first; tests marked `alone` come last and never run beside another.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

GROUPS = ("engine", "foreign", "browser")
ORDER = (*GROUPS, "simulation", None, "alone")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None, object, object]:
    """A wrapper, to be before xdist's own, which reads the groups."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_place)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """With its fixtures, also those that are set up or torn down for several tests."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    if run is None:
        return (yield)
    with _turn(Path(tempfile.gettempdir()) / f"tests-{run}", alone=item.get_closest_marker("alone") is not None):
        return (yield)


def _group(item: pytest.Item) -> str:
    shared = next((kind for kind in GROUPS if item.get_closest_marker(kind)), None)
    return shared or "/".join(item.path.with_suffix("").parts[-2:])


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

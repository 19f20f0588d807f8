"""How the workers share the tests, and how a test gets the machine for itself.

The tests of a file stay on one worker, so that its fixtures are made once. Tests with engines form one group: they
share engines, and two cores bear no second pair. Those with other people's servers form a second group, those with
a browser a third; a file of several kinds is in the first of them. These groups are the longest and come first.
Tests marked `alone` judge times: `make test` runs them in a second call, without workers.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from support.paths import ROOT

GROUPS = ("engine", "gpu", "foreign", "browser")
ORDER = (*GROUPS, None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--alone", choices=("only", "never"), help="which tests that are marked `alone` run")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Importing all files takes longer than the few tests that run alone."""
    alone = config.getoption("--alone") == "only" and collection_path.match("test_*.py")
    return True if alone and not _names(collection_path, "alone") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    choice = config.getoption("--alone")
    if choice is not None:
        chosen: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            is_alone = item.get_closest_marker("alone") is not None
            (chosen if is_alone == (choice == "only") else dropped).append(item)
        items[:] = chosen
        config.hook.pytest_deselected(items=dropped)
    items.sort(key=_place)


class ByGroup(LoadScopeScheduling):
    """xdist's own groups by marker are not seen by this version of pytest."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid.split("::")[0])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByGroup:
    return ByGroup(config, log)


@cache
def _group(file: str) -> str:
    return next((kind for kind in GROUPS if _names(ROOT / file, kind)), file)


def _names(file: Path, kind: str) -> bool:
    return f"pytest.mark.{kind}" in file.read_text(encoding="utf-8")


def _place(item: pytest.Item) -> int:
    """Stable: tests of one kind keep the order of their files."""
    return ORDER.index(next((kind for kind in ORDER if kind and item.get_closest_marker(kind)), None))

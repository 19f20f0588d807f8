"""The picture of the machine's GPUs."""

from __future__ import annotations

import re
from collections.abc import Collection
from xml.etree import ElementTree

import pytest
from support.nvml import GIB, Card, StandIn, with_cards

from playground.domain.spec.settings import EngineSettings, Knobs
from playground.engine import devices
from playground.i18n import LOCALES, Locale
from playground.runs.sides.cards import place
from playground.runs.sides.preflight import SideCheck
from playground.ui.compare.cards.picture import cards_picture


def drawn(
    cards: list[Card], nvlinks: Collection[tuple[int, int]] | None, wanted: list[int], locale: Locale
) -> str:
    with pytest.MonkeyPatch.context() as patch:
        with_cards(patch, StandIn(*cards, nvlinks=nvlinks))
        host = devices.machine()
    sides = [EngineSettings(target="t", knobs=Knobs(tensor_parallel_size=count)) for count in wanted]
    placed = place(sides, ["cuda"] * len(sides), host)
    checks = [SideCheck("<b>", None, None, (), None, placement=placement) for placement in placed]
    return cards_picture(checks, host.gpus, locale)


@pytest.mark.parametrize("locale", LOCALES)
@pytest.mark.parametrize(
    ("cards", "nvlinks", "wanted", "summary", "links"),
    [
        ([Card(), Card(mig=True)], [], [1, 1], "A 0 · B 0", 0),
        ([Card(), Card(), Card(), Card(used=99 * GIB)], [(0, 1)], [2, 1], "A 0-1 (", 1),
        ([Card(node=node, cores=[node]) for node in (0, 1)], [], [2], "A 0-1 (", 0),
        # NVLink from each to each is one bar a row, not arcs.
        ([Card(name="<i>") for _ in range(8)], None, [4, 4], "A 0-3 (", 1),
        ([Card(mig=True) for _ in range(10)], None, [8, 1], "A 0-7 (", 2),
    ],
)
def test_picture(
    cards: list[Card],
    nvlinks: Collection[tuple[int, int]] | None,
    wanted: list[int],
    summary: str,
    links: int,
    locale: Locale,
) -> None:
    html = drawn(cards, nvlinks, wanted, locale)
    picture = ElementTree.fromstring(html)
    assert summary in (picture.findtext("summary") or "")
    assert len(picture.findall(".//g")) == len(cards)
    assert len(picture.findall(".//path")) == links
    letters = [text for text in picture.itertext() if re.fullmatch("[A-D]", text)]
    assert letters.count("A") == wanted[0]


def test_no_picture_without_a_choice() -> None:
    assert cards_picture([SideCheck("A", None, None, (), None)], (), "en") == ""
    assert drawn([Card()], [], [1, 1], "en") == ""

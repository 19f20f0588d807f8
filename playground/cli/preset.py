"""The preset that a verb names."""

from __future__ import annotations

import sys

from playground import presets
from playground.domain.limits import Limits
from playground.i18n import say_message


def preset_of(name_or_path: str, limits: Limits) -> presets.Preset:
    """Read the preset. What was interpreted otherwise than it is written is printed on standard error."""
    preset = presets.load(name_or_path, limits)
    for note in preset.notes:
        print(say_message(note), file=sys.stderr)
    return preset

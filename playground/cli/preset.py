"""The preset that a verb names."""

from __future__ import annotations

import sys

from playground import presets
from playground.i18n import say_message


def preset_of(name_or_path: str) -> presets.Preset:
    """Read the preset. What was interpreted otherwise than it is written is printed on standard error."""
    preset = presets.load(name_or_path)
    for note in preset.notes:
        print(say_message(note), file=sys.stderr)
    return preset

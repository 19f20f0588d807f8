"""What breaks by itself: slow hubs, engines that hang, databases that are locked or broken, killed processes.

usage: python -m benchmarks.faults [NAME ...]      (all without names; about three minutes)

Stand-in engines, loopback only; each fault gets an app of its own. The exit code is 1 if one is not borne.
"""

from __future__ import annotations

import sys

from benchmarks.common import folder
from benchmarks.trials import main

from .databases import DATABASES
from .ends import ENDS
from .hangs import HANGS
from .processes import PROCESSES
from .starts import STARTS

FAULTS = (*ENDS, *HANGS, *PROCESSES, *DATABASES, *STARTS)

if __name__ == "__main__":
    sys.exit(main(FAULTS, folder))

"""What visitors, other websites, endpoints and other users of the machine may try, and whether it holds.

usage: python -m benchmarks.attacks [NAME ...]      (all without names; about three minutes)

Stand-in engines, loopback only; each attack gets an app of its own. The exit code is 1 if one does not hold.
"""

from __future__ import annotations

import sys

from benchmarks.common import folder
from benchmarks.trials import main

from .connections import CONNECTIONS
from .endpoints import ENDPOINTS
from .engines import ENGINES
from .logins import LOGINS
from .sizes import SIZES
from .users import USERS
from .websites import WEBSITES

ATTACKS = (*WEBSITES, *LOGINS, *SIZES, *ENDPOINTS, *USERS, *ENGINES, *CONNECTIONS)

if __name__ == "__main__":
    sys.exit(main(ATTACKS, folder))

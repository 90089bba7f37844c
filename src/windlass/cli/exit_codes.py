"""The exit codes of commands."""

from __future__ import annotations

import os
import sys
from typing import NoReturn

REFUSED = 1
"""It was refused, or there is no such thing; it may work another time."""
# Starting the command again would not help.
BAD_USAGE = 2
"""The arguments, the settings or the schema are wrong."""
PARTLY = 3
"""It was done as far as it could be; what was left out is listed."""
HUNG = 4
"""It was asked to stop, did not end in time, and was cut short."""

REPLACED = 5
"""A handler blocked the event loop for good; the supervisor starts the process anew."""

WARNINGS = 1
"""`windlass doctor` found something that should be looked at."""
PROBLEMS = 2
"""`windlass doctor` found something that does not work."""


def abandon() -> NoReturn:
    """End now: handlers that would not stop are still on other threads, and nothing is left to wait for."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)

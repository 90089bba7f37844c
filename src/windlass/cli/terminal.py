"""What a terminal can show, and in which colours."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_USUAL_SIZE = (100, 24)
STYLES = {
    "pending": "yellow",
    "scheduled": "cyan",
    "running": "bold blue",
    "paused": "magenta",
    "completed": "green",
    "failed": "bold red",
    "cancelled": "bright_black",
    "closed": "green",
    "open": "bold red",
    "half_open": "yellow",
    "active": "green",
    "live": "green",
    "expired": "bright_black",
    "revoked": "bright_black",
}
"""The colours of states, wherever one is shown."""


def is_terminal() -> bool:
    """Whether a person reads what is printed; otherwise it stays what scripts read."""
    return sys.stdout.isatty()


def size() -> tuple[int, int]:
    """Return how many columns and lines the terminal has."""
    import shutil  # noqa: PLC0415 - what is not drawn needs no size

    found = shutil.get_terminal_size(_USUAL_SIZE)
    return found.columns, found.lines


def has_colour() -> bool:
    """Whether colours may be used: never with NO_COLOR, whatever its value."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def console(*, is_error: bool = False) -> Console:
    """Open the terminal for drawing; this loads `rich`, so call it only when something is drawn."""
    from rich.console import Console  # noqa: PLC0415 - loading it takes longer than most commands

    return Console(
        file=sys.stderr if is_error else sys.stdout,
        force_terminal=True,
        # Without a colour system nothing is emphasized either, so that no escape code is left.
        color_system="auto" if has_colour() else None,
        width=size()[0],
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )

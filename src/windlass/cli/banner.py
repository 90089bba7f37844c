"""What a command that keeps running prints when it starts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from windlass import __version__
from windlass.app import Windlass

_LONGEST = 100
"""How many characters a list of names may take before the rest is only counted."""


def banner(what: str, lines: Sequence[tuple[str, str]]) -> str:
    """Lay out what runs and the labelled lines below it."""
    width = max(len(label) for label, _ in lines)
    return "\n".join([f"windlass {__version__}: {what}", "", *(f"  {label:<{width}} {text}" for label, text in lines), ""])


def database_line(app: Windlass) -> tuple[str, str]:
    """Describe where the jobs are, without a password."""
    parts = urlsplit(app.settings.database_url)
    if parts.scheme == "sqlite":
        return "database", f"{parts.path.removeprefix('/') or 'in memory'} (SQLite)"
    user = f"{parts.username}@" if parts.username else ""
    # The query is left out: it may hold a password too.
    return "database", f"postgresql://{user}{parts.netloc.rpartition('@')[2]}{parts.path}"


def worker_lines(app: Windlass) -> list[tuple[str, str]]:
    """Describe what a worker of this application runs, and how to stop it."""
    return [
        database_line(app),
        ("slots", ", ".join(f"{pool.lane}={pool.slots}" for pool in app.settings.pools)),
        ("tasks", _names(app.served().names)),
        ("schedules", _names(app.declared)),
        ("stop", f"Ctrl-C; running jobs get {app.settings.grace.total_seconds():g} s, the rest is given back"),
    ]


def _names(names: Sequence[str] | frozenset[str]) -> str:
    listed = sorted(names)
    # The first is shown, however long it is.
    most = next((count for count in range(len(listed), 1, -1) if len(", ".join(listed[:count])) <= _LONGEST), 1)
    more = len(listed) - len(listed[:most])
    return (", ".join(listed[:most]) or "none") + (f" and {more} more" if more else "")

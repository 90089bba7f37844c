"""Ready-made tasks, by the pack."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from windlass.app import Windlass
from windlass.errors import ConfigError

PACKS = {
    "staleness": "windlass.packs.staleness",
    "crawl": "windlass.packs.crawl",
    "command": "windlass.packs.command",
}
ASKED_FOR = frozenset({"command"})
"""Packs that must be named: whoever may enqueue could run any program with them."""
SAFE = tuple(name for name in PACKS if name not in ASKED_FOR)
"""What `windlass up` brings without being asked."""


def install(app: Windlass, names: Iterable[str]) -> None:
    """Declare the tasks of these packs on an application; raises ConfigError for one that is none or lacks its libraries."""
    for name in dict.fromkeys(names):
        if name not in PACKS:
            raise ConfigError(f"packs: there is no pack {name!r}; there are {', '.join(sorted(PACKS))}")
        try:
            pack = import_module(PACKS[name])
        except ModuleNotFoundError as error:
            raise ConfigError(f"packs: {name!r} needs the library {error.name!r}; install windlass[packs]") from error
        pack.install(app)

"""Ready-made tasks, by the pack."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from windlass.app import Windlass
from windlass.errors import ConfigError, nearest

PACKS = {
    "hello": "windlass.packs.hello",
    "staleness": "windlass.packs.staleness",
    "crawl": "windlass.packs.crawl",
    "notify": "windlass.packs.notify",
    "feeds": "windlass.packs.feeds",
    "command": "windlass.packs.command",
}
ASKED_FOR = frozenset({"command"})
"""Packs that must be named: every enqueuer could run any program with them."""
SAFE = tuple(name for name in PACKS if name not in ASKED_FOR)
"""The packs of `windlass up` without an application."""
OWNER = "windlass"
"""The owner of the schedules of packs, whichever application has them: several may have the same one."""
EXTRA = "windlass[packs]"
_NEEDED = {"staleness": "crawl"}
"""Packs whose tasks enqueue jobs of another pack."""


class PackUnavailable(ConfigError):
    """A library that a pack needs is not installed."""

    def __init__(self, name: str, library: str | None) -> None:
        super().__init__(f"packs: {name} needs {library}; install {EXTRA}")
        self.name = name
        self.library = library


def install(app: Windlass, names: Iterable[str]) -> None:
    """Declare the tasks of these packs on an application; raises ConfigError for a name that is none."""
    for name in dict.fromkeys(names):
        if name not in PACKS:
            raise ConfigError(f"packs: there is no pack {name!r}{nearest(name, PACKS)}; there are {', '.join(sorted(PACKS))}")
        before = frozenset(app.tasks)
        _load(name).install(app)
        app.disown(frozenset(app.tasks) - before, OWNER)


def install_available(app: Windlass, names: Iterable[str]) -> list[PackUnavailable]:
    """Declare the tasks of those packs whose libraries are installed; returns why the others were left out."""
    missing = []
    for name in names:
        try:
            _load(_NEEDED.get(name, name))
        except PackUnavailable as error:
            missing.append(PackUnavailable(name, error.library))
        else:
            install(app, [name])
    return missing


def _load(name: str) -> ModuleType:
    try:
        return import_module(PACKS[name])
    except ModuleNotFoundError as error:
        raise PackUnavailable(name, error.name) from error

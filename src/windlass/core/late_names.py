"""Names whose modules are imported when they are first asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def late_names(package: str, home_of: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a package whose names live in the modules of `home_of`."""

    def find(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = vars(sys.modules[package])[name] = getattr(import_module(home, package), name)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *home_of})


class LateNoun(Generic[T]):
    """An attribute that makes a noun for its owner; `home` is the module and the class of the noun."""

    def __init__(self, home: str) -> None:
        """Import nothing yet."""
        self._home = home
        self._noun: Callable[[object], T] | None = None

    def __get__(self, runner: object, owner: type) -> T:
        """Return the noun whose verbs `runner` runs."""
        if self._noun is None:
            module, _, name = self._home.partition(":")
            self._noun = getattr(import_module(module), name)
        return self._noun(runner)

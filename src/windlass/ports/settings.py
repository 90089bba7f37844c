"""The verbs of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from windlass.core.settings import Effective, StoredSetting

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Settings(Protocol):
    """What operators have set; it holds from the next use on, in every process."""

    async def set(self, name: str, value: object, by: str | None = None) -> StoredSetting:
        """Set a value that beats the environment and the default; an unknown name or a bad value is refused."""
        ...

    async def unset(self, name: str) -> bool:
        """Take a value back; False when none was set."""
        ...

    async def all(self) -> Sequence[StoredSetting]:
        """Read what was set, by name."""
        ...

    async def effective(self, env: Mapping[str, str] = _NOTHING) -> Mapping[str, Effective]:
        """Say what every setting is at this moment; `env` is the environment of who asks."""
        ...

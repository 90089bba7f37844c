"""The settings of a store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from windlass.core.audit import Actor
from windlass.core.settings import Effective, StoredSetting, effective
from windlass.store.calls import settings
from windlass.store.calls.audit import audited

if TYPE_CHECKING:
    from windlass.store.database import Database

_NOTHING: Mapping[str, str] = MappingProxyType({})


class SqlSettings:
    """What operators have set; it holds from the next use on, in every process."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def set(self, name: str, value: object, by: str | None = None) -> StoredSetting:
        """Set a value that beats the environment and the default; an unknown name or a bad value is refused."""
        principal = by if by is not None or self._actor is None else self._actor.principal
        call = settings.set_setting(name, value, principal)
        return await self._db.run(audited(call, self._actor, settings.was_set))

    async def unset(self, name: str) -> bool:
        """Take a value back; False when none was set."""
        call = settings.unset_setting(name)
        return await self._db.run(audited(call, self._actor, partial(settings.was_unset, name))) is not None

    async def all(self) -> Sequence[StoredSetting]:
        """Read what was set, by name."""
        return await self._db.run(settings.list_settings())

    async def effective(self, env: Mapping[str, str] = _NOTHING) -> Mapping[str, Effective]:
        """Say what every setting is at this moment; `env` is the environment of who asks."""
        return effective(await self.all(), env)

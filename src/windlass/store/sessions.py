"""The sessions of a store."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from windlass.core.access import Role, Session
from windlass.core.audit import Actor
from windlass.store.calls import sessions
from windlass.store.calls.audit import audited

if TYPE_CHECKING:
    from windlass.store.database import Database


class SqlSessions:
    """Browsers that logged in."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def open(
        self, digest: str, principal: str, role: Role, *, csrf: str, lasts: timedelta, now: datetime | None = None
    ) -> Session:
        """Let a browser in under the digest of its cookie; forgets sessions that are over."""
        call = sessions.open_session(digest, principal, role, csrf=csrf, lasts=lasts, now=now)
        return await self._db.run(audited(call, self._actor, sessions.was_opened, now))

    async def find(self, digest: str, now: datetime | None = None) -> Session | None:
        """Find the session, if it is not over."""
        return await self._db.run(sessions.find(digest, now))

    async def close(self, digest: str, now: datetime | None = None) -> bool:
        """End a session; False when there is none."""
        del now  # an end needs no clock; the argument is every verb's
        return await self._db.run(sessions.close(digest))

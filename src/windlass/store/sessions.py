"""The sessions of a store."""

from __future__ import annotations

from datetime import timedelta
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

    async def open(self, digest: str, principal: str, role: Role, *, csrf: str, lasts: timedelta) -> Session:
        """Let a browser in under the digest of its cookie; forgets sessions that are over."""
        call = sessions.open_session(digest, principal, role, csrf=csrf, lasts=lasts)
        return await self._db.run(audited(call, self._actor, sessions.was_opened))

    async def find(self, digest: str) -> Session | None:
        """Find the session, if it is not over."""
        return await self._db.run(sessions.find(digest))

    async def close(self, digest: str) -> bool:
        """End a session; False when there is none."""
        return await self._db.run(sessions.close(digest))

"""The verbs of sessions."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from windlass.core.access import Role, Session


class Sessions(Protocol):
    """Browsers that logged in."""

    async def open(self, digest: str, principal: str, role: Role, *, csrf: str, lasts: timedelta) -> Session:
        """Let a browser in under the digest of its cookie; forgets sessions that are over."""
        ...

    async def find(self, digest: str) -> Session | None:
        """Find the session, if it is not over."""
        ...

    async def close(self, digest: str) -> bool:
        """End a session; False when there is none."""
        ...

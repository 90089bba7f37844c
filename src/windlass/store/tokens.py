"""The tokens of a store."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from windlass.core.access import TOKEN_PREFIX, Minted, NewToken, Token
from windlass.core.audit import Actor
from windlass.core.tally import Tally
from windlass.store.calls import tally, tokens
from windlass.store.calls.audit import audited

if TYPE_CHECKING:
    from windlass.store.database import Database

_SECRET_BYTES = 32


class SqlTokens:
    """Credentials of programs; only digests are kept."""

    def __init__(self, database: Database, actor: Actor | None = None) -> None:
        """Speak to `database`; `actor` is whom the audit log names."""
        self._db = database
        self._actor = actor

    async def mint(self, token: NewToken, by: str | None = None) -> Minted:
        """Make a token; its secret is in the answer and nowhere else."""
        secret = f"{TOKEN_PREFIX}{secrets.token_urlsafe(_SECRET_BYTES)}"
        creator = by if by is not None or self._actor is None else self._actor.principal
        call = audited(tokens.mint(token, secret, creator), self._actor, tokens.was_minted)
        return Minted(await self._db.run(call), secret)

    async def find(self, secret: str) -> Token | None:
        """Find the token with this secret, if it is live."""
        return await self._db.run(tokens.find(secret))

    async def revoke(self, token_id: int) -> Token:
        """End a token and every session it opened; again is no error. Raises TokenNotFound."""
        return await self._db.run(audited(tokens.revoke(token_id), self._actor, tokens.was_revoked))

    async def seen(self, ids: Iterable[int]) -> None:
        """Note that tokens were used."""
        await self._db.run(tokens.seen(ids))

    async def list(self, *, after: int = 0, limit: int = tokens.MAX_LIST) -> Sequence[Token]:
        """Read tokens in the order they were made, page by page."""
        return await self._db.run(tokens.list_tokens(after, limit))

    async def count_live(self) -> int:
        """Count tokens that are live."""
        return await self._db.run(tokens.count_live())

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        return await self._db.run(tally.count("count_tokens"))

"""The verbs of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from windlass.core.access import Minted, NewToken, Token
from windlass.core.tally import Tally


class Tokens(Protocol):
    """Credentials of programs; only digests are kept."""

    async def mint(self, token: NewToken, by: str | None = None) -> Minted:
        """Make a token; its secret is in the answer and nowhere else."""
        ...

    async def find(self, secret: str) -> Token | None:
        """Find the token with this secret, if it is live."""
        ...

    async def revoke(self, token_id: int) -> Token:
        """End a token and every session it opened; again is no error. Raises TokenNotFound."""
        ...

    async def seen(self, ids: Iterable[int]) -> None:
        """Note that tokens were used."""
        ...

    async def list(self, *, after: int = 0, limit: int = 500) -> Sequence[Token]:
        """Read tokens in the order they were made, page by page."""
        ...

    async def count_live(self) -> int:
        """Count tokens that are live."""
        ...

    async def count(self) -> Tally:
        """Count them, up to a bound."""
        ...

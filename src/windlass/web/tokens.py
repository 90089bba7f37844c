"""Tokens of programs: list, mint, revoke."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import Field, StringConstraints

from windlass.core.access import MAX_LANES, NewToken, Role
from windlass.core.durations import parse_duration
from windlass.core.ids import MAX_JOB
from windlass.core.record import shaped
from windlass.web.fields import Body, Limit, Listed, Name, capped
from windlass.web.request_context import operator_of, reader_of
from windlass.web.route import Route
from windlass.wire import answer

_CENTURY_S = 36_500 * 86_400


class TokenIn(Body):
    """A token to be made."""

    name: Name
    role: Annotated[Role, Field(strict=False)]
    lanes: Annotated[list[Name], Field(min_length=1, max_length=MAX_LANES)] | None = None
    """Only for workers; null allows every lane."""
    worker: Name | None = None
    """Only for workers: the id that its holder works under; null is the name."""
    expires_in: (
        Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{0,3}[smhd]$")] | Annotated[int, Field(ge=1, le=_CENTURY_S)] | None
    ) = None
    """Seconds, or as in 90d; null lives until it is revoked."""


@answer
class TokenOut:
    """A token without its secret."""

    id: int
    name: str
    role: Role
    lanes: tuple[str, ...] | None
    created_by: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    seen_at: datetime | None
    is_live: bool
    worker: str | None


@answer
class MintedOut(TokenOut):
    """A new token; the secret is shown this once."""

    secret: str


class TokensOut(Listed):
    """Tokens in the order they were made."""

    tokens: list[TokenOut]
    next: int | None
    """Send it as `after` for the next page."""


async def list_tokens(request: Request, after: Annotated[int, Query(ge=0, le=MAX_JOB)] = 0, limit: Limit = 100) -> TokensOut:
    """List the tokens."""
    tokens = reader_of(request).tokens
    found = await tokens.list(after=after, limit=capped(limit))
    counted = await tokens.count()
    last = found[-1].id if len(found) == capped(limit) else None
    shown = [shaped(TokenOut, one) for one in found]
    return TokensOut(tokens=shown, total=counted.total, is_total_exact=counted.is_exact, next=last)


async def mint_token(request: Request, body: TokenIn) -> MintedOut:
    """Make a token; its secret is in this answer and nowhere else."""
    wanted = NewToken(
        name=body.name,
        role=body.role,
        lanes=None if body.lanes is None else tuple(body.lanes),
        worker=body.worker,
        expires_in=None if body.expires_in is None else parse_duration(body.expires_in, field="expires_in"),
    )
    minted = await operator_of(request).tokens.mint(wanted)
    return shaped(MintedOut, minted.token, secret=minted.secret)


async def revoke_token(request: Request, id: Annotated[int, Path(ge=1, le=MAX_JOB)]) -> TokenOut:  # noqa: A002 - the path's name
    """End a token, and every session it opened, at once (in other servers within a second)."""
    return shaped(TokenOut, await operator_of(request).tokens.revoke(id))


ROUTES = (
    Route("GET", "/api/v1/tokens", Role.ADMIN, list_tokens, is_costly=True),
    Route("POST", "/api/v1/tokens", Role.ADMIN, mint_token, 201),
    Route("DELETE", "/api/v1/tokens/{id}", Role.ADMIN, revoke_token, errors=(404,)),
)

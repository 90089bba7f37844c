"""Tokens: minted, found by digest, revoked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from windlass.core.access import NewToken, Role, Token, digest_of
from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text
from windlass.core.ids import MAX_JOB
from windlass.core.job import MAX_NAME
from windlass.core.page import CappedCount
from windlass.core.payload import encode, encode_object
from windlass.errors import TokenNotFound
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.reads import count_capped
from windlass.store.rows import SHAPES, Row, Shape

MAX_LIST = 500
_TOKEN = Shape.of(Token)
SHAPES |= dict.fromkeys(("mint_token", "find_token", "revoke_token", "list_tokens"), _TOKEN)


def mint(token: NewToken, secret: str, by: str | None = None) -> Call[Token]:
    """Keep a new token under the digest of its secret."""
    if by is not None:
        check_text("by", by, MAX_NAME)
    params = {
        "name": token.name,
        "role": token.role.value,
        "worker": token.worker_id if token.role is Role.WORKER else None,
        "token_lanes": None if token.lanes is None else encode(list(token.lanes), field="lanes"),
        "digest": digest_of(secret),
        "expires_in": token.expires_in,
    }

    def steps(means: Means) -> Steps[Token]:
        return _token((yield Step("mint_token", {**params, "by": by or means.principal}))[0])

    return Call(steps, is_single=True, deed=_was_minted)


def find(secret: str) -> Call[Token | None]:
    """Find the valid token with this secret."""

    def decode(found: Sequence[Row]) -> Token | None:
        token = _token(found[0]) if found else None
        return token if token is not None and token.is_live else None

    return single("find_token", {"digest": digest_of(secret)}, decode, is_read=True)


def revoke(token_id: int) -> Call[Token]:
    """End a token and every session it opened; again is no error. Raises TokenNotFound."""

    def steps(_: Means) -> Steps[Token]:
        # No token has a number beyond what the column holds.
        found = (yield Step("revoke_token", {"token_id": token_id})) if 1 <= token_id <= MAX_JOB else ()
        if not found:
            raise TokenNotFound(token_id)
        token = _token(found[0])
        yield Step("close_sessions", {"principal": token.principal})
        return token

    return Call(steps, deed=_was_revoked)


def seen(ids: Iterable[int]) -> Call[int]:
    """Note that tokens were used."""
    return single("see_tokens", {"ids": batches.numbers(ids)}, len)


def list_tokens(*, after: int = 0, limit: int = MAX_LIST) -> Call[list[Token]]:
    """Read tokens in the order they were made."""
    check_range("after", after, 0, MAX_JOB)
    check_range("limit", limit, 1, MAX_LIST)
    params = {"after": after, "limit": limit}
    return single("list_tokens", params, lambda found: [_token(row) for row in found], is_read=True)


def count_live() -> Call[int]:
    """Count valid tokens."""
    return single("count_live_tokens", {}, lambda found: found[0][0], is_read=True)


def count() -> Call[CappedCount]:
    """Count them, up to a bound."""
    return count_capped("count_tokens")


def _token(row: Row) -> Token:
    number, name, role, lanes, *rest = row
    return Token(number, name, Role(role), None if lanes is None else tuple(json.loads(lanes)), *rest)


def _was_minted(token: Token) -> Deed:
    """Describe a new token, without its secret."""
    lanes = None if token.lanes is None else list(token.lanes)
    details = {"name": token.name, "role": token.role.value, "lanes": lanes, "worker": token.worker}
    return Deed("mint token", f"token:{token.id}", "done", encode_object(details))


def _was_revoked(token: Token) -> Deed:
    """Describe the end of a token."""
    return Deed("revoke token", f"token:{token.id}", "done", encode_object({"name": token.name, "role": token.role.value}))

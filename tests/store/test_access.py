"""Tokens and sessions: only digests are kept, and what has ended lets nobody in."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support.raw import execute
from windlass.core.access import TOKEN_PREFIX, Minted, NewToken, Role, digest_of
from windlass.core.audit import Actor
from windlass.errors import InvalidInput, TokenNotFound
from windlass.store import Store
from windlass.testing import FakeClock

ADA = Actor("ada", "request-1")
HOUR = timedelta(hours=1)


async def minted(store: Store, role: Role = Role.PRODUCER, **options: object) -> Minted:
    return await store.acting(ADA).tokens.mint(NewToken(name="ci", role=role, **options))  # type: ignore[arg-type]


async def test_a_token_is_found_by_its_secret_which_is_not_kept(store: Store) -> None:
    token, secret = await minted(store, Role.WORKER, lanes=("pull", "fast"))
    assert secret.startswith(TOKEN_PREFIX)
    assert len(secret) >= 43 + len(TOKEN_PREFIX)
    assert await store.tokens.find(secret) == token
    assert (token.role, token.lanes, token.created_by, token.is_live) == (Role.WORKER, ("pull", "fast"), "ada", True)
    kept = await execute(store, "select * from windlass_tokens") + await execute(store, "select * from windlass_audit")
    assert secret not in str(kept)
    assert digest_of(secret) in str(kept)


async def test_two_tokens_have_nothing_in_common(store: Store) -> None:
    one, other = await minted(store), await minted(store)
    assert one.secret != other.secret
    assert one.token.principal != other.token.principal
    assert [token.id for token in await store.tokens.list()] == [one.token.id, other.token.id]
    assert [token.id for token in await store.tokens.list(after=one.token.id, limit=1)] == [other.token.id]


async def test_an_expired_token_lets_nobody_in(store: Store, clock: FakeClock) -> None:
    token, secret = await minted(store, expires_in=HOUR)
    assert token.expires_at == clock.now() + HOUR
    clock.advance(hours=1)
    assert await store.tokens.find(secret) is None
    assert await store.tokens.count_live() == 0
    assert [found.is_live for found in await store.tokens.list()] == [False]


async def test_a_revoked_token_ends_with_every_session_it_opened(store: Store, clock: FakeClock) -> None:
    token, secret = await minted(store)
    other, _ = await minted(store)
    for digest, principal in (("a", token.principal), ("b", token.principal), ("c", other.principal)):
        await store.sessions.open(digest, principal, Role.VIEWER, csrf="x", lasts=HOUR)
    revoked = await store.acting(ADA).tokens.revoke(token.id)
    assert (revoked.revoked_at, revoked.is_live) == (clock.now(), False)
    assert await store.tokens.find(secret) is None
    assert await store.tokens.count_live() == 1
    assert [await store.sessions.find(digest) is None for digest in "abc"] == [True, True, False]
    clock.advance(seconds=5)
    assert (await store.tokens.revoke(token.id)).revoked_at == revoked.revoked_at


async def test_what_is_done_to_tokens_is_in_the_audit_log(store: Store) -> None:
    token, _ = await minted(store)
    await store.acting(ADA).tokens.revoke(token.id)
    await store.acting(ADA).sessions.open("d", "ada", Role.ADMIN, csrf="x", lasts=HOUR)
    lines = [(line.action, line.target) for line in await store.audit.list()]
    assert lines == [("log in", None), ("revoke token", f"token:{token.id}"), ("mint token", f"token:{token.id}")]


@pytest.mark.parametrize("number", [0, 7, -1, 2**63, 2**80])
async def test_a_token_that_is_not_there_cannot_be_revoked(store: Store, number: int) -> None:
    with pytest.raises(TokenNotFound):
        await store.acting(ADA).tokens.revoke(number)
    assert await store.audit.list() == []


async def test_a_use_is_noted(store: Store, clock: FakeClock) -> None:
    token, _ = await minted(store)
    assert token.seen_at is None
    await store.tokens.seen([token.id, 99])
    assert [found.seen_at for found in await store.tokens.list()] == [clock.now()]


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": "a\nb"},
        {"name": "x" * 201},
        {"role": "admin"},
        {"lanes": ("pull",)},
        {"role": Role.WORKER, "lanes": ()},
        {"role": Role.WORKER, "lanes": ("x",) * 101},
        {"role": Role.WORKER, "lanes": ("",)},
        {"expires_in": timedelta()},
        {"worker": "w1"},
        {"role": Role.WORKER, "name": "a/b"},
        {"role": Role.WORKER, "worker": "a/b"},
        {"role": Role.WORKER, "worker": ""},
    ],
)
def test_bad_tokens_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        NewToken(**{"name": "ci", "role": Role.VIEWER, **options})  # type: ignore[arg-type]


async def test_a_workers_token_is_bound_to_one_worker(store: Store) -> None:
    bound = [
        await minted(store, Role.WORKER),
        await minted(store, Role.WORKER, worker="w1"),
        await minted(store),
    ]
    assert [one.token.worker for one in bound] == ["ci", "w1", None]
    found = [await store.tokens.find(one.secret) for one in bound]
    assert [one.worker for one in found if one is not None] == ["ci", "w1", None]


async def test_a_session_is_found_until_it_is_over(store: Store, clock: FakeClock) -> None:
    opened = await store.sessions.open("d", "ada", Role.OPERATOR, csrf="x", lasts=HOUR)
    assert await store.sessions.find("d") == opened
    assert await store.sessions.find("e") is None
    clock.advance(hours=1)
    assert await store.sessions.find("d") is None
    await store.sessions.open("e", "ada", Role.OPERATOR, csrf="x", lasts=HOUR)
    assert await execute(store, "select digest from windlass_sessions") == [("e",)]


async def test_a_closed_session_is_over_at_once(store: Store) -> None:
    await store.sessions.open("d", "ada", Role.OPERATOR, csrf="x", lasts=HOUR)
    assert await store.sessions.close("d")
    assert not await store.sessions.close("d")
    assert await store.sessions.find("d") is None

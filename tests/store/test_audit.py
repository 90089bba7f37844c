"""The audit log: appended, chained off the writer's path, verified."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest

from tests.store.builders import enqueue_one
from tests.support.raw import execute
from windlass.core.audit import START, Actor, AuditFilter, ChainLink, Deed
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock

ADA = Actor("ada", "request-1")
BOB = Actor("bob")
MONTH = timedelta(days=30)


async def wrote(store: Store, clock: FakeClock, lines: int = 5) -> list[int]:
    """Write lines a second apart and return their numbers, oldest first."""
    numbers = []
    for place in range(lines):
        actor = (ADA, BOB)[place % 2]
        numbers.append(await store.acting(actor).audit.add(Deed("look", f"job:{place}", "refused", '{"n":1}')))
        clock.advance(seconds=1)
    return numbers


async def tamper(store: Store, change: str) -> None:
    """Change the log as somebody would who owns the database."""
    if isinstance(store.database, Sqlite):
        for trigger in ("edited", "deleted"):
            await execute(store, f"drop trigger if exists windlass_audit_{trigger}")
    else:
        await execute(store, "alter table windlass_audit disable trigger user")
    await execute(store, change)


async def test_a_line_says_who_did_what(store: Store, clock: FakeClock) -> None:
    [number] = await wrote(store, clock, 1)
    [line] = await store.audit.list()
    assert (line.id, line.at, line.principal, line.request_id) == (number, clock.now() - timedelta(seconds=1), "ada", "request-1")
    assert (line.action, line.target, line.outcome, line.details_json) == ("look", "job:0", "refused", '{"n":1}')
    assert (line.chain, line.place) == (None, None)


async def test_lines_are_found_by_what_they_say(store: Store, clock: FakeClock) -> None:
    numbers = await wrote(store, clock, 6)
    await store.acting(ADA).cancel([await enqueue_one(store)])

    async def found(**wanted: object) -> list[int]:
        return [line.id for line in await store.audit.list(AuditFilter(**wanted))]  # type: ignore[arg-type]

    assert await found(principal="bob") == numbers[5::-2]
    assert await found(target="job:2") == [numbers[2]]
    assert len(await found(action="cancel")) == 1
    assert len(await found(since=clock.now() - timedelta(seconds=2))) == 3
    assert [line.id for line in await store.audit.list(before=numbers[3], limit=2)] == [numbers[2], numbers[1]]


async def test_somebody_must_be_named(store: Store) -> None:
    with pytest.raises(InvalidInput, match="acting"):
        await store.audit.add(Deed("look"))


@pytest.mark.parametrize("deed", [Deed(""), Deed("a", target=""), Deed("a", details="[]"), Deed("a", outcome="")])
async def test_bad_deeds_are_refused(store: Store, deed: Deed) -> None:
    with pytest.raises(InvalidInput):
        await store.acting(ADA).audit.add(deed)


async def test_lines_are_chained_in_batches_and_verified(store: Store, clock: FakeClock) -> None:
    assert await store.audit.chain() == (0, START)
    await wrote(store, clock)
    assert (await store.audit.chain(limit=2))[0] == 2
    assert await store.audit.verify() == ()
    count, head = await store.audit.chain()
    assert (count, head.place) == (3, 5)
    assert await store.audit.chain() == (0, head)
    assert await store.audit.verify(head) == ()
    assert {line.place for line in await store.audit.list()} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    "change",
    [
        "update windlass_audit set principal = 'eve'",
        "update windlass_audit set details = '{}'",
        "update windlass_audit set principal = 'eve', chain = 'x', place = 1 where id = (select max(id) from windlass_audit)",
        "update windlass_audit set chain = null, place = null where chain is not null",
        "update windlass_audit set chain = 'x' where chain is not null",
        "delete from windlass_audit",
    ],
)
async def test_the_log_only_grows(store: Store, clock: FakeClock, change: str) -> None:
    await wrote(store, clock, 2)
    await store.audit.chain(limit=1)
    with pytest.raises(Exception, match="append-only"):
        await execute(store, change)
    assert len(await store.audit.list()) == 2


async def test_an_edited_line_is_named(store: Store, clock: FakeClock) -> None:
    numbers = await wrote(store, clock)
    await store.audit.chain()
    await tamper(store, f"update windlass_audit set outcome = 'done' where id = {numbers[2]}")
    [broken] = await store.audit.verify()
    assert (broken.place, broken.entry_id) == (3, numbers[2])
    await tamper(store, f"update windlass_audit set outcome = 'refused' where id = {numbers[2]}")


async def test_a_deleted_line_is_named_by_its_place(store: Store, clock: FakeClock) -> None:
    numbers = await wrote(store, clock)
    _, head = await store.audit.chain()
    await tamper(store, f"delete from windlass_audit where id in ({numbers[0]}, {numbers[2]})")
    assert [broken.place for broken in await store.audit.verify(head)] == [1, 3]
    await tamper(store, "delete from windlass_audit")


async def test_lines_that_changed_places_are_named(store: Store, clock: FakeClock) -> None:
    numbers = await wrote(store, clock)
    await store.audit.chain()
    for old, new in ((2, 99), (3, 2), (99, 3)):
        await tamper(store, f"update windlass_audit set place = {new} where place = {old}")
    assert [broken.entry_id for broken in await store.audit.verify()] == [numbers[2], numbers[1], numbers[3]]
    for old, new in ((2, 99), (3, 2), (99, 3)):
        await tamper(store, f"update windlass_audit set place = {new} where place = {old}")


async def test_a_head_kept_elsewhere_shows_that_the_newest_lines_were_cut_off(store: Store, clock: FakeClock) -> None:
    numbers = await wrote(store, clock)
    _, head = await store.audit.chain()
    await tamper(store, f"delete from windlass_audit where id >= {numbers[3]}")
    assert await store.audit.verify() == ()
    assert [broken.place for broken in await store.audit.verify(head)] == [5]
    assert [broken.place for broken in await store.audit.verify(ChainLink(2, "other"))] == [2]


async def test_many_chainers_and_writers_make_one_chain(stores: list[Store]) -> None:
    async def write(store: Store) -> None:
        for number in range(15):
            await store.acting(ADA).audit.add(Deed("look", f"job:{number}"))

    async def chain(store: Store) -> None:
        for _ in range(15):
            await store.audit.chain(limit=4)

    await asyncio.gather(*(write(store) for store in stores), *(chain(store) for store in stores))
    while (await stores[0].audit.chain())[0]:
        pass
    _, head = await stores[0].audit.chain()
    assert head.place == 75
    assert await stores[0].audit.verify(head) == ()


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_a_line_that_commits_after_a_later_one_takes_the_next_place(store: Store, clock: FakeClock) -> None:
    assert isinstance(store.database, Postgres)
    async with await psycopg.AsyncConnection.connect(store.database.dsn) as connection:
        await connection.execute("insert into windlass_audit (at, principal, action) values (now(), 'slow', 'look')")
        [late] = await wrote(store, clock, 1)
        assert (await store.audit.chain())[0] == 1
        await connection.commit()
    assert (await store.audit.chain())[0] == 1
    places = {line.principal: (line.id < late, line.place) for line in await store.audit.list()}
    assert places == {"ada": (False, 1), "slow": (True, 2)}
    assert await store.audit.verify() == ()


@pytest.mark.parametrize("backend", ["postgres"], indirect=True)
async def test_the_log_cannot_be_emptied(store: Store, clock: FakeClock) -> None:
    await wrote(store, clock, 1)
    with pytest.raises(psycopg.IntegrityError, match="append-only"):
        await execute(store, "truncate windlass_audit")


async def refused(store: Store, clock: FakeClock, lines: int) -> None:
    """Write refusals a second apart."""
    for _ in range(lines):
        await store.acting(BOB).audit.add(Deed("refuse", "GET /", "refused"))
        clock.advance(seconds=1)


async def aged(store: Store, clock: FakeClock) -> None:
    """Mix old refusals with lines that stay, and chain them."""
    await refused(store, clock, 3)
    await wrote(store, clock, 2)
    await refused(store, clock, 2)
    await wrote(store, clock, 1)
    await refused(store, clock, 2)
    await store.audit.chain()
    clock.advance(days=31)


async def test_old_refusals_are_pruned_and_the_chain_still_holds(store: Store, clock: FakeClock) -> None:
    await aged(store, clock)
    head = (await store.audit.chain())[1]
    # In two pieces, one of which ends inside a gap; the last link stays.
    assert [await store.audit.prune_refusals(MONTH, limit=4) for _ in range(3)] == [4, 2, 0]
    assert await store.audit.verify() == ()
    await store.audit.chain()
    assert await store.audit.verify(head) == ()
    kept = await store.audit.list()
    assert [line.action for line in reversed(kept)] == ["look"] * 3 + ["refuse"] + ["prune refusals"] * 2
    await refused(store, clock, 1)
    await store.audit.chain()
    assert await store.audit.verify() == ()


async def test_a_link_that_was_pruned_is_still_on_the_chain(store: Store, clock: FakeClock) -> None:
    await refused(store, clock, 2)
    head = (await store.audit.chain())[1]
    await wrote(store, clock, 1)
    await store.audit.chain()
    clock.advance(days=31)
    assert await store.audit.prune_refusals(MONTH) == 2
    assert await store.audit.verify(head) == ()


async def test_young_and_unchained_refusals_stay(store: Store, clock: FakeClock) -> None:
    await refused(store, clock, 2)
    await wrote(store, clock, 1)
    clock.advance(days=31)
    assert await store.audit.prune_refusals(MONTH) == 0
    await store.audit.chain()
    assert await store.audit.prune_refusals(timedelta(days=32)) == 0
    assert await store.audit.prune_refusals(MONTH) == 2


async def test_what_goes_beyond_a_pruning_is_found(store: Store, clock: FakeClock) -> None:
    await aged(store, clock)
    await store.audit.prune_refusals(MONTH)
    await store.audit.chain()
    await tamper(store, "delete from windlass_audit where place = 5")
    assert [broken.place for broken in await store.audit.verify()] == [5]
    await tamper(store, "delete from windlass_audit")


async def test_a_pruning_that_says_something_else_is_found(store: Store, clock: FakeClock) -> None:
    await aged(store, clock)
    await store.audit.prune_refusals(MONTH)
    await store.audit.chain()
    await tamper(store, "update windlass_audit set details = '{\"gaps\":[[1,5,\"x\"]]}' where action = 'prune refusals'")
    assert await store.audit.verify()
    await tamper(store, "delete from windlass_audit")


@pytest.mark.parametrize("which", ["action = 'look'", "chain is null"])
async def test_only_chained_refusals_can_be_deleted_at_all(store: Store, clock: FakeClock, which: str) -> None:
    await wrote(store, clock, 1)
    await store.audit.chain()
    await refused(store, clock, 1)
    with pytest.raises(Exception, match="append-only"):
        await execute(store, f"delete from windlass_audit where {which}")

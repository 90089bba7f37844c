"""Dead letters in lists and groups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.store.builders import a_job, end, fail_for_good, failure, running
from tests.support.raw import execute
from windlass.core.letter_page import LetterQuery, LetterStatus
from windlass.errors import InvalidInput, LetterNotFound
from windlass.store import Store
from windlass.store.sqlite import Sqlite
from windlass.testing import FakeClock


async def die(store: Store, clock: FakeClock, task: str = "work", message: str = "boom") -> int:
    """Let a job fail for good; returns its letter."""
    job = await running(store, a_job(task, max_attempts=1))
    await end(store, clock, job, failure(message))
    [letter] = await store.list_dead_letters(job.id)
    clock.advance(seconds=1)
    return letter.id


async def acknowledge(store: Store, letter: int) -> None:
    at = "died_at"
    await execute(store, f"update windlass_dead_letters set acknowledged_at = {at}, acknowledged_by = 'ann' where id = {letter}")


async def test_letters_are_listed_newest_first_and_filtered(store: Store, clock: FakeClock) -> None:
    first = await die(store, clock, "email")
    middle = clock.now()
    second = await die(store, clock, "report", "no disk")
    third = await die(store, clock, "email", "no disk")
    back = await fail_for_good(store, clock)
    [last] = [letter.id for letter in await store.list_dead_letters(back.id)]
    await store.retry([back.id])
    await acknowledge(store, second)
    fingerprint = (await store.letters.get(third)).fingerprint

    async def ids(**options: object) -> list[int]:
        page = await store.letters.list(LetterQuery(**options))  # type: ignore[arg-type]  # each test names real fields
        assert (page.total, page.is_total_exact, page.next_cursor) == (len(page.letters), True, None)
        return [letter.id for letter in page.letters]

    assert await ids() == [last, third, second, first]
    assert await ids(status=LetterStatus.OPEN) == [third, first]
    assert await ids(status=LetterStatus.ACKNOWLEDGED) == [second]
    assert await ids(status=LetterStatus.CLOSED) == [last]
    assert await ids(task="email") == [third, first]
    assert await ids(since=middle) == [last, third, second]
    assert third in await ids(fingerprint=fingerprint)
    assert await ids(task="email", status=LetterStatus.CLOSED) == []
    assert await store.letters.count_open() == (2, True)


async def test_pages_of_letters_are_the_list_cut_into_pieces(store: Store, clock: FakeClock) -> None:
    letters = [await die(store, clock) for _ in range(7)]
    for status in (None, LetterStatus.OPEN):
        walked: list[int] = []
        cursor: str | None = None
        while True:
            page = await store.letters.list(LetterQuery(status=status, limit=3, cursor=cursor))
            assert (page.total, page.is_total_exact) == (7, True)
            walked += [letter.id for letter in page.letters]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert walked == letters[::-1]


async def test_deaths_of_one_kind_are_one_group_with_its_newest_example(store: Store, clock: FakeClock) -> None:
    assert await store.letters.groups() == ((), True)
    old = await die(store, clock, "email", "no disk")
    new = await die(store, clock, "email", "no disk")
    other = await die(store, clock, "report", "boom")
    alike, single = sorted((await store.letters.groups()).groups, key=lambda group: -group.letters)
    assert (alike.letters, alike.deaths, alike.newest_id, alike.task, alike.error) == (2, 2, new, "email", "no disk")
    assert alike.last_died_at == (await store.letters.get(new)).died_at
    assert (single.letters, single.newest_id) == (1, other)
    await acknowledge(store, new)
    still_open = {group.fingerprint: group for group in (await store.letters.groups(is_open=True)).groups}
    assert still_open[alike.fingerprint].newest_id == old
    assert len((await store.letters.groups(limit=1)).groups) == 1


async def fill(store: Store, letter: int, copies: int) -> None:
    """Give many other jobs letters as old as this one, closed before anybody looks."""
    numbers = f"with recursive n (i) as (select 1 union all select i + 1 from n where i < {copies}) "
    at = "died_at, died_at, died_at, 'retried'"
    await execute(
        store,
        "insert into windlass_dead_letters (job_id, task, lane, original_job, error, fingerprint, first_died_at, died_at,"
        f" closed_at, closed_reason) {numbers} select 1000 + i, 'bulk', lane, original_job, error, fingerprint, {at}"
        f" from windlass_dead_letters cross join n where id = {letter}",
    )


async def forget(store: Store) -> None:
    await execute(store, "delete from windlass_dead_letters where task = 'bulk'")


async def test_letters_behind_many_others_are_reached_by_the_cursor(store: Store, clock: FakeClock) -> None:
    rare = await die(store, clock, "rare")
    await fill(store, await die(store, clock), 5_100)
    query = LetterQuery(task="rare")
    first = await store.letters.list(query)
    assert (first.letters, first.is_total_exact) == ((), False)
    rest = await store.letters.list(LetterQuery(task="rare", cursor=first.next_cursor))
    assert [letter.id for letter in rest.letters] == [rare]
    assert rest.next_cursor is None
    await forget(store)


@pytest.mark.parametrize("by", ["status", "fingerprint"])
async def test_of_very_many_letters_the_newest_deaths_come_first(store: Store, clock: FakeClock, by: str) -> None:
    """A schedule has a low number and may die today."""
    first = await die(store, clock)
    await fill(store, first, 5_100)
    await execute(store, "update windlass_dead_letters set closed_at = null, closed_reason = null where task = 'bulk'")
    later = "+ 1000000" if isinstance(store.database, Sqlite) else "+ interval '1 second'"
    await execute(store, f"update windlass_dead_letters set died_at = died_at {later} where id = {first}")
    letter = await store.letters.get(first)
    options: dict[str, Any] = {"status": LetterStatus.OPEN} if by == "status" else {"fingerprint": letter.fingerprint}
    page = await store.letters.list(LetterQuery(limit=500, **options))
    assert page.letters[0].id == first
    seen = len(page.letters)
    while page.next_cursor:
        page = await store.letters.list(LetterQuery(limit=500, cursor=page.next_cursor, **options))
        seen += len(page.letters)
    assert seen == 5_101
    assert not (await store.letters.groups(is_open=True)).is_complete
    await forget(store)


async def test_open_letters_are_grouped_behind_many_closed_ones(store: Store, clock: FakeClock) -> None:
    old = await die(store, clock, "rare")
    await fill(store, await die(store, clock), 5_100)
    groups = await store.letters.groups(is_open=True)
    assert old in {group.newest_id for group in groups.groups}
    assert groups.is_complete
    assert not (await store.letters.groups(is_open=False)).is_complete
    await forget(store)


@pytest.mark.parametrize("letter", [1, 0, -5, 2**70])
async def test_a_letter_that_is_not_there_is_not_found(store: Store, letter: int) -> None:
    with pytest.raises(LetterNotFound):
        await store.letters.get(letter)


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 501}, {"cursor": "x"}, {"task": ""}, {"fingerprint": "\0"}])
def test_a_page_of_letters_that_cannot_be_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        LetterQuery(**options)  # type: ignore[arg-type]  # what a caller might send

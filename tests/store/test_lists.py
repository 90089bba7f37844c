"""Lists of jobs answer as a plain filter and sort over all jobs would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest

from tests.store.builders import a_job, claim, end, enqueue_one, failure, recurring
from tests.support.raw import execute
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.ids import job_uuid
from windlass.core.job import CLOSED, Job, JobState, WaitReason
from windlass.core.page import Cursor, JobQuery, Page, Sort
from windlass.errors import InvalidInput
from windlass.store import Store
from windlass.store.calls import lists
from windlass.testing import FakeClock

RETRY = frozenset({WaitReason.RETRY})


def in_states(*states: JobState, **rest: Any) -> JobFilter:
    return JobFilter(states=tuple(StateFilter(state) for state in states), **rest)


def reference(jobs: list[Job], query: JobQuery) -> list[int]:
    """Say which jobs a list has and in which order, the slow way."""
    chosen = [job for job in jobs if is_meant(job, query.filter)]
    return [job.id for job in sorted(chosen, key=lambda job: order(job, query))]


def is_meant(job: Job, wanted: JobFilter) -> bool:
    states = {(one.state, reason) for one in wanted.state_filters for reason in (one.reasons or [*WaitReason, None])}
    texts = (job.task, job.name, job.subject, job.unique_key, job.last_error, job.payload_json)
    return (
        (not wanted.states or (job.state, job.wait_reason) in states)
        and (not wanted.tasks or job.task in wanted.tasks)
        and (not wanted.lanes or job.lane in wanted.lanes)
        and wanted.subject in {None, job.subject}
        and wanted.correlation_id in {None, job.correlation_id}
        and wanted.parent_id in {None, job.parent_id}
        and wanted.is_template in {None, job.spawn}
        and wanted.is_recurring in {None, job.cadence is not None}
        and (wanted.since is None or job.created_at >= wanted.since)
        and wanted.priority in {None, job.priority}
        and (wanted.worker is None or (job.token is not None and job.worker == wanted.worker))
        and (wanted.error is None or wanted.error.lower() in (job.last_error or "").lower())
        and (wanted.search is None or any(wanted.search.lower() in text.lower() for text in texts if text))
    )


def order(job: Job, query: JobQuery) -> tuple[float, ...]:
    sign = -1 if query.is_descending else 1

    def at(moment: datetime) -> float:
        return sign * moment.timestamp()

    keys: dict[Sort, Callable[[], tuple[float, ...]]] = {
        Sort.CREATED_AT: lambda: (sign * job.id,),
        Sort.UPDATED_AT: lambda: (at(job.updated_at), sign * job.id),
        Sort.RUN_AT: lambda: (at(job.run_at), sign * job.id),
        Sort.PRIORITY: lambda: (sign * job.priority, -at(job.run_at), -sign * job.id),
        Sort.COMPLETED_AT: lambda: (float("inf") if job.closed_at is None else at(job.closed_at), sign * job.id),
        Sort.STATE: lambda: (sign * list(JobState).index(job.state), sign * job.id),
    }
    return keys[query.sort]()


FILTERS = [
    JobFilter(),
    *(in_states(state) for state in JobState),
    in_states(*CLOSED),
    in_states(JobState.PENDING, JobState.RUNNING),
    in_states(JobState.PENDING, tasks=("email", "report")),
    in_states(JobState.COMPLETED, lanes=("fast",)),
    JobFilter(tasks=("email",)),
    JobFilter(lanes=("fast", "slow")),
    JobFilter(tasks=("nothing",)),
    JobFilter(states=(StateFilter(JobState.SCHEDULED, RETRY), StateFilter(JobState.FAILED))),
    JobFilter(states=(StateFilter(JobState.PENDING, RETRY),)),
    JobFilter(subject="one"),
    JobFilter(subject="one", tasks=("email",)),
    JobFilter(correlation_id="c-1"),
    JobFilter(parent_id=1),
    JobFilter(search="AnN@example"),
    JobFilter(search="boom"),
    JobFilter(search="100%"),
    JobFilter(priority=5),
    JobFilter(priority=0, states=(StateFilter(JobState.PENDING),)),
    JobFilter(error="bOOm"),
    JobFilter(error="ann@example"),
    JobFilter(worker="worker-1"),
    JobFilter(worker="worker-1", states=(StateFilter(JobState.RUNNING),), tasks=("email",)),
    JobFilter(worker="nobody"),
    JobFilter(search="a_b", tasks=("report",)),
    JobFilter(is_recurring=True),
    JobFilter(is_recurring=False, lanes=("fast",)),
    JobFilter(is_template=True),
    JobFilter(is_template=False, states=(StateFilter(JobState.SCHEDULED),)),
]


async def a_mixed_queue(store: Store, clock: FakeClock) -> list[Job]:
    """Bring jobs of all kinds into all states."""
    rng = Random(3)
    for place in range(60):
        clock.advance(seconds=rng.choice([0, 1, 61]))
        options: dict[str, Any] = {
            "lane": rng.choice(["fast", "slow", "default"]),
            "priority": rng.choice([0, 0, 5, -3]),
            "subject": rng.choice([None, "one", "two"]),
            "correlation_id": rng.choice([None, "c-1"]),
            "parent_id": rng.choice([None, 1]),
            "payload": rng.choice(['{"to":"Ann@Example.org"}', '{"rate":"100%"}', '{"x":"a_b"}', '{"x":"axb"}']),
            "delay": rng.choice([None, None, timedelta(hours=1), timedelta(hours=place)]),
            "max_attempts": rng.choice([1, 3]),
        }
        await store.enqueue([a_job(rng.choice(["email", "report"]), **options)])
    await store.enqueue([a_job("tick", recurrence=recurring(), name="every half hour", run_at=clock.now())])
    await store.enqueue([a_job("tick", recurrence=recurring(), spawn=True, run_at=clock.now())])
    for job in await claim(store, 24):
        clock.advance(seconds=rng.choice([0, 2]))
        if rng.random() < 0.6:
            await end(store, clock, job, rng.choice([None, None, failure("Boom!")]))
    everything = await every_job(store)
    waiting = [job.id for job in everything if job.state in {JobState.PENDING, JobState.SCHEDULED}]
    running = [job.id for job in everything if job.state is JobState.RUNNING]
    await store.pause([*waiting[:6], *[job.id for job in everything if job.cadence]])
    await store.cancel([*waiting[6:9], *running[:1]])
    await store.promote()
    return await every_job(store)


async def every_job(store: Store) -> list[Job]:
    ids = [row[0] for row in await execute(store, "select id from windlass_jobs order by id")]
    return [await store.get(job_id) for job_id in ids]


async def test_every_list_has_the_jobs_and_the_order_of_a_plain_filter_and_sort(store: Store, clock: FakeClock) -> None:
    jobs = await a_mixed_queue(store, clock)
    assert {job.state for job in jobs} == set(JobState)
    since = [JobFilter(since=jobs[place].created_at) for place in (0, 20, -1)]
    for wanted, sort, is_descending in product([*FILTERS, *since], Sort, (True, False)):
        query = JobQuery(filter=wanted, sort=sort, is_descending=is_descending, limit=500)
        page = await store.list_jobs(query)
        expected = reference(jobs, query)
        assert [job.id for job in page.jobs] == expected, query
        assert (page.total, page.is_total_exact, page.is_complete) == (len(expected), True, True), query
        assert page.next_cursor is None


@pytest.mark.parametrize("sort", Sort)
async def test_pages_by_cursor_and_by_offset_are_the_list_cut_into_pieces(store: Store, clock: FakeClock, sort: Sort) -> None:
    jobs = await a_mixed_queue(store, clock)
    chosen = (
        JobFilter(),
        in_states(*CLOSED),
        in_states(JobState.PENDING),
        in_states(JobState.SCHEDULED),
        JobFilter(subject="one"),
    )
    for wanted, is_descending in product(chosen, (True, False)):
        whole = reference(jobs, JobQuery(filter=wanted, sort=sort, is_descending=is_descending))
        walked: list[int] = []
        cursor: str | None = None
        while True:
            query = JobQuery(filter=wanted, sort=sort, is_descending=is_descending, limit=7, cursor=cursor)
            page = await store.list_jobs(query)
            by_offset = await store.list_jobs(
                JobQuery(filter=wanted, sort=sort, is_descending=is_descending, limit=7, offset=len(walked))
            )
            assert by_offset.jobs == page.jobs
            assert page.total == by_offset.total == len(whole)
            walked += [job.id for job in page.jobs]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert walked == whole, (wanted, sort, is_descending)


async def test_a_list_that_is_too_long_to_sort_says_so_and_keeps_to_the_newest(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_SORTED", 20)
    monkeypatch.setattr(lists, "MOST_COUNTED", 20)
    jobs = await a_mixed_queue(store, clock)
    newest = sorted(jobs, key=lambda job: -job.id)[:21]
    page = await store.list_jobs(JobQuery(sort=Sort.UPDATED_AT, limit=500))
    assert [job.id for job in page.jobs] == reference(newest, JobQuery(sort=Sort.UPDATED_AT))
    assert (page.total, page.is_total_exact, page.is_complete) == (len(jobs), True, False)
    counted = await store.list_jobs(JobQuery(filter=JobFilter(is_template=False), limit=5))
    assert (counted.total, counted.is_total_exact, counted.is_complete) == (20, False, False)


async def test_a_long_list_of_slices_sorts_the_newest_of_each(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_SORTED", 6)
    monkeypatch.setattr(lists, "MOST_COUNTED", 10)
    await store.enqueue([a_job(f"task-{place % 3}", delay=timedelta(hours=place)) for place in range(1, 31)])
    page = await store.list_jobs(JobQuery(filter=in_states(JobState.SCHEDULED), sort=Sort.UPDATED_AT))
    assert [job.id for job in page.jobs] == [30, 29, 28, 27, 26, 25]
    assert (page.total, page.is_total_exact, page.is_complete, page.next_cursor) == (30, True, False, None)


async def test_a_deep_page_over_slices_is_merged(store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "MOST_GATHERED", 1)
    monkeypatch.setattr(lists, "MOST_COUNTED", 1)
    jobs = await a_mixed_queue(store, clock)
    for wanted, is_descending in product((in_states(*JobState), in_states(JobState.PENDING, JobState.RUNNING)), (True, False)):
        query = JobQuery(filter=wanted, is_descending=is_descending, limit=5, offset=9)
        page = await store.list_jobs(query)
        whole = reference(jobs, query)
        assert [job.id for job in page.jobs] == whole[9:14]
        assert (page.total, page.is_complete) == (len(whole), True)
        assert (page.next_cursor is None) == (len(whole) <= 14)
        if page.next_cursor is not None:
            after = await store.list_jobs(replace(query, offset=0, cursor=page.next_cursor))
            assert [job.id for job in after.jobs] == whole[14:19]


async def test_a_search_that_stops_early_goes_on_where_it_stopped(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_SORTED", 20)
    jobs = await a_mixed_queue(store, clock)
    for is_descending in (True, False):
        query = JobQuery(filter=JobFilter(search="boom"), is_descending=is_descending, limit=3)
        found: list[int] = []
        page: Page | None = None
        while page is None or page.next_cursor is not None:
            cursor = None if page is None else page.next_cursor
            page = await store.list_jobs(JobQuery(filter=query.filter, is_descending=is_descending, limit=3, cursor=cursor))
            found += [job.id for job in page.jobs]
        assert found == reference(jobs, query)


async def test_very_many_slices_are_one_list_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.enqueue([a_job(f"task-{place}", lane=f"lane-{place % 3}") for place in range(90)])
    [job] = await claim(store, 1)
    expected = [job_id for job_id in range(90, 0, -1) if job_id != job.id]
    page = await store.list_jobs(JobQuery(filter=in_states(JobState.PENDING), limit=500))
    assert [one.id for one in page.jobs] == expected
    assert (page.total, page.is_complete) == (89, True)
    monkeypatch.setattr(lists, "MOST_GATHERED", 1)
    monkeypatch.setattr(lists, "MOST_COUNTED", 50)
    monkeypatch.setattr(lists, "MOST_SORTED", 50)
    page = await store.list_jobs(JobQuery(filter=in_states(JobState.PENDING), limit=500))
    assert (page.total, page.is_total_exact, page.is_complete) == (89, True, False)
    assert [one.id for one in page.jobs] == [job_id for job_id in expected if job_id >= 40]


async def test_a_job_enqueued_between_two_pages_moves_nothing_on_the_next(store: Store) -> None:
    ids = [enqueued.id for enqueued in await store.enqueue([a_job()] * 6)]
    first = await store.list_jobs(JobQuery(limit=3))
    await enqueue_one(store)
    second = await store.list_jobs(JobQuery(limit=3, cursor=first.next_cursor))
    assert [job.id for job in (*first.jobs, *second.jobs)] == ids[::-1]
    assert (second.total, second.next_cursor) == (7, None)


def forged(*keys: int) -> str:
    """Write a cursor that no list gave out."""
    query = JobQuery()
    return query.cursor_at(Cursor(keys, 0, is_total_exact=True))  # type: ignore[arg-type]  # what a caller might send


@pytest.mark.parametrize("parent", [0, -1, 2**63, "7"])
def test_a_parent_that_no_job_can_have_is_refused(parent: Any) -> None:
    with pytest.raises(InvalidInput, match="parent_id"):
        JobFilter(parent_id=parent)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("limit", {"limit": 0}),
        ("limit", {"limit": 501}),
        ("offset", {"offset": -1}),
        ("offset", {"offset": 10_001}),
        ("sort", {"sort": "password"}),
        ("cursor", {"cursor": "nonsense"}),
        ("cursor", {"cursor": "WzFd"}),
        ("cursor", {"cursor": "é"}),
        ("cursor", {"cursor": forged(1, 2)}),
        ("cursor", {"cursor": forged(-(2**63), 0, 0)}),
    ],
)
def test_a_page_that_cannot_be_is_refused_by_name(field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        JobQuery(**options)
    assert refused.value.field == field


async def test_a_cursor_serves_only_the_list_it_came_from(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job()] * 3)
    cursor = (await store.list_jobs(JobQuery(limit=1))).next_cursor
    assert cursor is not None
    for other in (
        {"sort": Sort.RUN_AT},
        {"is_descending": False},
        {"filter": JobFilter(tasks=("work",))},
        {"filter": JobFilter(since=clock.now())},
    ):
        with pytest.raises(InvalidInput, match="another list"):
            JobQuery(cursor=cursor, **other)
    with pytest.raises(InvalidInput, match="not both"):
        JobQuery(cursor=cursor, offset=1)


async def test_a_job_s_own_uuid_is_a_correlation_of_itself_and_its_children(store: Store) -> None:
    own = await enqueue_one(store, a_job("parent"))
    other = await enqueue_one(store, a_job("other", correlation_id="c"))
    uuid = str(job_uuid(own))
    child = await enqueue_one(store, a_job("child", parent_id=own, correlation_id=uuid))
    odd = await enqueue_one(store, a_job("odd", parent_id=own, correlation_id="c"))
    cousin = await enqueue_one(store, a_job("cousin", correlation_id=uuid))

    async def found(correlation_id: str, **rest: Any) -> list[int]:
        query = JobQuery(filter=JobFilter(correlation_id=correlation_id), **rest)
        return [job.id for job in (await store.list_jobs(query)).jobs]

    assert await found(uuid) == await found(uuid.upper()) == [cousin, odd, child, own]
    assert await found(uuid, is_descending=False) == [own, child, odd, cousin]
    assert await found(uuid, sort=Sort.STATE, is_descending=False) == [own, child, odd, cousin]
    assert await found("c") == [odd, other]
    assert await found(str(own)) == []
    assert await found(str(job_uuid(other))) == [other]
    assert await found(str(job_uuid(99))) == []
    related = await store.list_by_correlation(uuid)
    assert [job.id for job in related.jobs] == [own, child, odd, cousin]


async def test_a_list_by_own_uuid_goes_on_page_by_page_and_keeps_its_other_filters(store: Store) -> None:
    own = await enqueue_one(store, a_job("parent"))
    uuid = str(job_uuid(own))
    children = [await enqueue_one(store, a_job(f"t{n % 2}", parent_id=own, correlation_id=uuid)) for n in range(7)]
    for descending in (True, False):
        seen: list[int] = []
        query = JobQuery(filter=JobFilter(correlation_id=uuid), limit=3, is_descending=descending)
        while True:
            page = await store.list_jobs(query)
            assert (page.total, page.is_total_exact) == (8, True)
            seen += [job.id for job in page.jobs]
            if page.next_cursor is None:
                break
            query = replace(query, cursor=page.next_cursor)
        assert seen == sorted([own, *children], reverse=descending)
    odd = await store.list_jobs(JobQuery(filter=JobFilter(correlation_id=uuid, tasks=("t1",))))
    assert ([job.id for job in odd.jobs], odd.total) == ([children[5], children[3], children[1]], 3)

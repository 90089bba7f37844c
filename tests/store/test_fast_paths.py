"""The fast statements leave exactly what the general ones do, whatever else is true of the job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.store.builders import a_job, claim, due, failure
from windlass.core.job import DEFAULT_RETRY, Claimed, JobState, NewJob, OnConflict, UniqueScope
from windlass.core.outcome import Completed, Run, decide
from windlass.store import Store, batches, rows
from windlass.store.calls import work
from windlass.store.calls.call import single
from windlass.testing import FakeClock

RESULTS = [None, "1", '"a \\"quoted\\" \\\\ one"', '{"a":[1,2.5,null,true],"ü":"{x,y}"}', '""', "[]"]
JOBS = [
    a_job(),
    a_job(payload='{"a \\"b\\"":"\\\\ {1,2} ü"}', priority=7, lane="odd lane"),
    a_job(unique_key="k1", unique_scope=UniqueScope.PENDING),
    a_job(unique_key="k2", unique_scope=UniqueScope.ACTIVE),
    a_job(unique_key="k3", unique_scope=UniqueScope.FOREVER),
    a_job(subject="s", correlation_id="c", parent_id=5, target_count=9, timeout=timedelta(seconds=5), max_attempts=2),
    a_job(retry=DEFAULT_RETRY),
    a_job(metadata='{"m":1}', description="d", collection="c", item_key='["i"]', created_by="me"),
]
# What differs between two jobs that are alike in all that matters.
OWN = {"id", "token", "unique_key", "unique_slot"}


def _alike(job: NewJob, copy: int) -> NewJob:
    """Describe the same job once more; a key is held by one of them."""
    return job if job.unique_key is None else replace(job, unique_key=f"{job.unique_key}-{copy}")


def _ends(
    held: Sequence[Claimed], clock: FakeClock, result: str | None = None, cpu_time_ms: int | None = None
) -> list[Completed]:
    at_us = clock.now_us()
    return [Completed(job.id, job.token, job, at_us - 1_234_567, at_us, cpu_time_ms, result) for job in held]


async def _rows(store: Store, job_id: int) -> list[dict[str, Any]]:
    found = [asdict(await store.get(job_id)), *map(asdict, await store.list_executions(job_id))]
    return [{name: value for name, value in row.items() if name not in OWN | {"job_id"}} for row in found]


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("cpu_time_ms", [None, 12])
async def test_a_plain_end_leaves_the_same_rows(
    store: Store, clock: FakeClock, result: str | None, cpu_time_ms: int | None
) -> None:
    fast = [one.id for one in await store.enqueue([_alike(job, 1) for job in JOBS])]
    slow = [one.id for one in await store.enqueue([_alike(job, 2) for job in JOBS])]
    clock.advance(seconds=3)
    held = {job.id: job for job in await claim(store, limit=100)}
    clock.advance(seconds=2)
    ends = {end.id: end for end in _ends([*held.values()], clock, result, cpu_time_ms)}
    accepted = await store.finish([ends[job_id] for job_id in fast])
    assert accepted == dict.fromkeys(fast, JobState.COMPLETED)
    general = single("finish", work.finish_params([ends[job_id].decided() for job_id in slow]), rows.finished)
    assert await store.run(general) == dict.fromkeys(slow, JobState.COMPLETED)
    for one, other in zip(fast, slow, strict=True):
        assert await _rows(store, one) == await _rows(store, other)


async def test_a_plain_end_forgets_what_failed_before(store: Store, clock: FakeClock) -> None:
    [one, other] = [one.id for one in await store.enqueue([a_job(), a_job()])]
    for _ in range(2):
        held = await claim(store, limit=2)
        await store.finish(
            [decide(job, failure(), Run(clock.now(), clock.now()), now=clock.now(), rng=Random(1)) for job in held]
        )
        clock.advance(hours=1)
        await due(store)
    held = sorted(await claim(store, limit=2))
    first, second = _ends(held, clock)
    await store.finish([first])
    await store.run(single("finish", work.finish_params([second.decided()]), rows.finished))
    assert (await store.get(one)).last_error is None
    assert [row | {"wait_ms": 0} for row in await _rows(store, one)] == [
        row | {"wait_ms": 0} for row in await _rows(store, other)
    ]


async def test_what_changed_while_it_ran_is_left_to_the_general_statement(store: Store, clock: FakeClock) -> None:
    asked = [one.id for one in await store.enqueue([a_job(unique_key="again"), a_job(), a_job(), a_job()])]
    again, cancelled, plain, late = asked
    held = {job.id: job for job in await claim(store, limit=4)}
    await store.enqueue([a_job(unique_key="again", on_conflict=OnConflict.RERUN)])
    await store.cancel([cancelled])
    ends = {end.id: end for end in _ends([*held.values()], clock)}
    stale = held[late]._replace(token=held[late].token + 1)
    [ends[late]] = _ends([stale], clock)
    accepted = await store.finish([ends[job_id] for job_id in asked])
    assert accepted == {again: JobState.SCHEDULED, plain: JobState.COMPLETED}
    await store.stop([(cancelled, held[cancelled].token, Run())])
    assert [(await store.get(job_id)).state for job_id in asked] == ["scheduled", "cancelled", "completed", "running"]


async def test_a_report_may_hold_ends_of_both_kinds_and_of_several_workers(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job() for _ in range(6)])
    mine, theirs = await claim(store, limit=4), await claim(store, limit=2, worker="worker-2")
    failed = decide(mine[0], failure(), Run(clock.now(), clock.now()), now=clock.now(), rng=Random(1))
    accepted = await store.finish([failed, *_ends(mine[1:], clock), *_ends(theirs, clock)])
    assert sorted(accepted.values()) == [*["completed"] * 5, "scheduled"]
    runs = [run for job in (*mine, *theirs) for run in await store.list_executions(job.id)]
    assert [(run.job_id, run.worker) for run in runs] == [(job.id, job.worker) for job in (*mine, *theirs)]


async def test_an_end_that_is_sent_again_was_accepted(store: Store, clock: FakeClock) -> None:
    await store.enqueue([a_job(), a_job()])
    ends = _ends(await claim(store, limit=2), clock)
    first = await store.finish(ends)
    assert await store.finish(ends) == first
    assert len(await store.list_executions(ends[0].id)) == 1


async def test_plain_jobs_are_inserted_as_others_are(store: Store) -> None:
    jobs = [a_job(payload=f'{{"n":{number},"t":"\\"\\\\{{}},"}}', priority=3) for number in range(1001)]
    fast = await store.enqueue(jobs)
    documents = [batches.in_order(map(batches.new_job, part)) for part in (jobs[:1000], jobs[1000:])]
    slow = [one for text in documents for one in await store.run(single("insert_jobs", {"jobs": text}, sorted))]
    assert [one.id for one in fast] == sorted(one.id for one in fast)
    for one, other in [(fast[0], slow[0]), (fast[999], slow[999]), (fast[1000], slow[1000])]:
        assert await _rows(store, one.id) == await _rows(store, other[1])
    assert [job.payload_json for job in await store.get_many([one.id for one in fast[:3]])] == [job.payload for job in jobs[:3]]


async def test_a_claim_reads_everything_a_job_has(store: Store) -> None:
    made = await store.enqueue(JOBS)
    held = {job.id: job for job in await claim(store, limit=100)}
    for one in made:
        job, taken = await store.get(one.id), held[one.id]
        assert taken._asdict() == {
            name: getattr(job, {"execution": "executions", "payload": "payload_json"}.get(name, name)) for name in Claimed._fields
        }

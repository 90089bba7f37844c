"""What operators do beyond moving a job."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from windlass import BreakerOpen, Discard, JobState, Windlass
from windlass.core.filter import JobFilter
from windlass.core.job import Lease
from windlass.core.job_verbs import Bulk
from windlass.core.outcome import Failure, Raised, decide


@pytest.fixture
def note(app: Windlass) -> Any:
    @app.task
    def note(number: int) -> None: ...

    return note


async def start_next(app: Windlass) -> int:
    store = await app.store()
    [job] = await store.claim(await store.slices(), 1, Lease(Random(1).getrandbits(60), "me", timedelta(seconds=20)))
    return job.id


async def test_jobs_are_boosted_buried_cloned_and_deleted(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    assert (await app.boost(job, 30)).priority == 30
    assert app.boost_sync(job).priority == 40
    assert (await app.bury(job, "no use")).state is JobState.FAILED
    clone = await app.clone(job)
    assert (clone.state, clone.parent_id) == (JobState.PENDING, job.id)
    assert app.clone_sync(job, "ann").created_by == "ann"
    assert app.bury_sync(clone, "neither").state is JobState.FAILED
    assert app.delete_sync(await note.enqueue(5)).task == "note"
    assert (await app.delete(await note.enqueue(6))).task == "note"


async def test_a_run_is_failed_by_hand(app: Windlass, note: Any) -> None:
    await note.enqueue_many([{"number": 1}, {"number": 2}])
    first, second = await start_next(app), await start_next(app)
    assert (await app.fail(first, "service away")).state is JobState.SCHEDULED
    assert app.fail_sync(second, "hopeless", will_retry=False).state is JobState.FAILED


async def test_letters_are_acknowledged_and_requeued(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    await app.bury(job, "no use")
    [letter] = await app.dead_letters_of(job)
    assert (await app.letters.acknowledge([letter.id], by="ann", note="seen")).one().acknowledged_by == "ann"
    assert app.letters.requeue_sync([letter.id]).one().closed_at is not None
    assert (await app.get(job)).state is JobState.PENDING


async def test_jobs_are_found_by_correlation(app: Windlass, note: Any) -> None:
    jobs = [await note.using(correlation_id="user-action-123").enqueue(number) for number in range(2)]
    await note.enqueue(3)
    assert {job.id for job in await app.jobs_by_correlation("user-action-123")} == {job.id for job in jobs}
    assert {job.id for job in app.jobs_by_correlation_sync("user-action-123")} == {job.id for job in jobs}


async def test_dead_letters_are_read(app: Windlass, note: Any) -> None:
    await note.using(max_attempts=1).enqueue(1)
    store = await app.store()
    [job] = await store.claim(await store.slices(), 1, Lease(7, "me", timedelta(seconds=20)))
    await store.finish([decide(job, Raised(Failure("boom", "OSError")), now=await store.clock(), rng=Random(1))])
    [letter] = (await app.letters.list()).letters
    assert app.letters.list_sync().letters == (letter,)
    assert (await app.letters.get(letter.id)).error == app.letters.get_sync(letter.id).error == "boom"


async def test_failures_in_a_row_open_the_breaker_and_a_success_closes_it(app: Windlass) -> None:
    for _ in range(2):
        with pytest.raises(OSError, match="away"), app.breaker("smtp", threshold=2, open_for="1h"):
            raise OSError("away")
    with pytest.raises(BreakerOpen):
        async with app.breaker("smtp", threshold=2):
            pytest.fail("the block must not run")
    await app.breakers.force_open("smtp", "1ms")
    await asyncio.sleep(0.01)
    async with app.breaker("smtp", threshold=2):
        pass
    assert [breaker.state for breaker in app.breakers.list_sync()] == ["closed"]


async def test_signals_and_single_failures_do_not_open_a_breaker(app: Windlass) -> None:
    for error in (Discard("no"), OSError("away"), Discard("no")):
        with pytest.raises(type(error)):
            async with app.breaker("smtp", threshold=2):
                raise error
    async with app.breaker("smtp", threshold=2):
        pass
    with pytest.raises(OSError, match="away"):
        async with app.breaker("smtp", threshold=2):
            raise OSError("away")
    assert await app.breakers.get("smtp") is None


async def test_operators_open_and_reset_breakers(app: Windlass) -> None:
    assert (await app.breakers.force_open("api", "5m")).state == "open"
    assert app.breakers.force_open_sync("other").is_forced
    assert [breaker.name for breaker in await app.breakers.list()] == ["api", "other"]
    with pytest.raises(BreakerOpen, match="'api'"), app.breaker("api"):
        pytest.fail("the block must not run")
    await app.breakers.reset("api")
    app.breakers.reset_sync("other")
    assert [breaker.state for breaker in app.breakers.list_sync()] == ["closed", "closed"]


async def test_priorities_leases_and_states_are_set_by_hand(app: Windlass, note: Any) -> None:
    job = await note.enqueue(1)
    assert (await app.set_priority(job, 7)).priority == 7
    assert app.override_status_sync(job, JobState.RUNNING, by="ann", lease="5m").worker == "operator:ann"
    assert (await app.take_lease(job)).worker is None
    assert (await app.override_status(job, JobState.COMPLETED, by="ann")).state is JobState.COMPLETED


async def test_a_filter_moves_many_jobs(app: Windlass, note: Any) -> None:
    await note.enqueue_many([{"number": number} for number in range(3)])
    wanted = JobFilter(tasks=("note",))
    assert await app.bulk("boost", wanted, {"amount": 5}, dry_run=True) == Bulk(3)
    assert app.bulk_sync("boost", wanted, {"amount": 5}) == Bulk(3, 3, 0)
    assert {job.priority for job in (await app.list()).jobs} == {5}

"""Short ways to bring a store into a state."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from windlass.core.cadence import Every, Recurrence
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import Claimed, Job, JobState, Lease, NewJob
from windlass.core.outcome import Failure, Outcome, Raised, Returned, Run, decide
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.core.retry import RetrySpec
from windlass.store import Store
from windlass.testing import FakeClock

LEASE = timedelta(seconds=30)
_tokens = count(1)
_rng = Random(7)


def a_job(task: str = "work", **options: Any) -> NewJob:
    """Describe a job whose retries have no chance in them."""
    options.setdefault("retry", RetrySpec(jitter=0.0))
    return NewJob(task=task, **options)


def recurring(every: timedelta = timedelta(minutes=30), **options: Any) -> Recurrence:
    """Describe a rule that brings a job back."""
    return Recurrence(cadence=Every(every), **options)


def a_lease(worker: str = "worker-1", length: timedelta = LEASE) -> Lease:
    """Make a lease with a token nobody had before."""
    return Lease(next(_tokens), worker, length)


async def enqueue_one(store: Store, job: NewJob | None = None) -> int:
    """Enqueue one job and return its number."""
    [enqueued] = await store.enqueue([job or a_job()])
    return enqueued.id


async def claim(store: Store, limit: int = 10, *, worker: str = "worker-1", started: bool = True) -> list[Claimed]:
    """Claim from every open slice."""
    return await store.claim(await store.slices(), limit, a_lease(worker), started=started)


async def claim_one(store: Store, *, worker: str = "worker-1", started: bool = True) -> Claimed:
    """Claim exactly one job; a suspect if there is no other."""
    for job in await claim(store, 1, worker=worker, started=started):
        return job
    suspect = await claim_suspect(store, worker=worker)
    assert suspect is not None
    return suspect


async def claim_suspect(store: Store, *, worker: str = "worker-1") -> Claimed | None:
    """Claim the first job whose last run ended in a lost lease."""
    taken = await store.claim_suspects(await store.slices(), 1, a_lease(worker))
    return taken[0] if taken else None


async def running(store: Store, job: NewJob | None = None, *, started: bool = True) -> Claimed:
    """Enqueue a job and claim it."""
    await enqueue_one(store, job)
    return await claim_one(store, started=started)


async def end(store: Store, clock: FakeClock, job: Claimed, outcome: Outcome | None = None, *, run: Run | None = None) -> bool:
    """Finish a job as its worker would; says whether it was accepted."""
    return job.id in await store.finish([ending(job, clock.now(), outcome, run)])


def ending(job: Claimed, now: datetime, outcome: Outcome | None = None, run: Run | None = None) -> Any:
    """Decide an outcome; a plain success if none is given."""
    return decide(job, outcome or Returned(), run or Run(job.claimed_at, now), now=now, rng=_rng)


def failure(message: str = "boom") -> Raised:
    """Describe a run that failed."""
    return Raised(Failure(message, "RuntimeError"))


async def due(store: Store) -> None:
    """Make everything that is due claimable."""
    await store.promote()


async def fail_for_good(store: Store, clock: FakeClock, job: NewJob | None = None) -> Job:
    """Bring a job to its end as a dead letter."""
    held = await running(store, job or a_job(max_attempts=1))
    await end(store, clock, held, failure())
    return await store.get(held.id)


async def pending_slot(store: Store, key: str = "k") -> Claimed:
    """Run a job that holds its key only while it waits."""
    return await running(store, a_job(unique_key=key, unique_scope="pending", max_attempts=5))


async def all_jobs(store: Store, *states: JobState) -> list[Job]:
    """Read every job in these states, or in any, in the order of their numbers."""
    chosen = JobFilter(states=tuple(StateFilter(state) for state in states))
    page = await store.list_jobs(JobQuery(filter=chosen, is_descending=False, limit=MAX_PAGE))
    assert page.next_cursor is None
    return list(page.jobs)

"""A store for code without an event loop: its coroutines never suspend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from tests.store.builders import a_job
from tests.support.stores import fresh_url
from windlass.core.blocking import run
from windlass.core.breaker import BreakerSpec, BreakerState
from windlass.core.filter import JobFilter
from windlass.core.job import JobState, Lease
from windlass.core.outcome import Returned, decide
from windlass.store import Store, open_blocking_store
from windlass.testing import FakeClock


@pytest.fixture(params=["sqlite-file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as url:
        opened = open_blocking_store(url, rng=Random(1)).at(clock)
        yield opened
        run(opened.aclose())


def test_a_job_lives_its_whole_life(store: Store, clock: FakeClock) -> None:
    [enqueued] = run(store.enqueue([a_job()]))
    lease = Lease(7, "me", timedelta(seconds=20))
    [claimed] = run(store.claim(run(store.slices()), 1, lease))
    assert [held.id for held in run(store.renew([(claimed.id, 7, None)], lease.length))] == [enqueued.id]
    ending = decide(claimed, Returned("5"), now=clock.now(), rng=Random(1))
    assert run(store.finish([ending])) == {enqueued.id: JobState.COMPLETED}


def test_operators_have_their_verbs(store: Store) -> None:
    first, second = (job.id for job in run(store.enqueue([a_job(), a_job()])))
    assert run(store.boost([first], 5)).one().priority == 5
    assert run(store.bury([first], "no")).one().state is JobState.FAILED
    [letter] = run(store.letters.list()).letters
    assert [job.id for job in run(store.letters.requeue([letter.id])).jobs] == [first]
    assert run(store.bulk("cancel", JobFilter())).matched == 2
    assert run(store.get(second)).state is JobState.CANCELLED


def test_breakers_have_theirs(store: Store, clock: FakeClock) -> None:
    mail = BreakerSpec("mail", 3, timedelta(seconds=60))
    assert run(store.breakers.record(mail, succeeded=False, failures=3)) is BreakerState.OPEN
    assert not run(store.breakers.admit(mail)).is_admitted
    clock.advance(seconds=60)
    admission = run(store.breakers.admit(mail))
    assert run(store.breakers.record(mail, succeeded=True, token=admission.token)) is BreakerState.CLOSED


def test_waiting_for_a_wakeup_is_refused(store: Store) -> None:
    with pytest.raises(NotImplementedError, match="polls"):
        store.database.listen(store.wakeups, Random(1))


def test_a_coroutine_that_would_wait_is_refused() -> None:
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        run(asyncio.sleep(0))

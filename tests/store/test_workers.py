"""The registry of processes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.store.builders import claim, enqueue_one, running
from windlass.core.audit import Actor
from windlass.core.worker import NewWorker, SeenWorker
from windlass.errors import InvalidInput, WorkerNotFound
from windlass.store import Store
from windlass.testing import FakeClock

ADA = NewWorker(id="ada", host="box", pid=7, version="1.0", pools='{"fast":3}', tasks='["work"]')


async def test_a_registered_worker_is_listed_with_the_jobs_it_has_started(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    held = await running(store)
    await enqueue_one(store)
    await claim(store, worker="ada", started=False)
    await enqueue_one(store)
    [job] = await claim(store, worker="ada")
    [worker] = await store.workers.list()
    assert (worker.id, worker.kind, worker.host, worker.pid, worker.version) == ("ada", "worker", "box", 7, "1.0")
    assert (worker.pools_json, worker.tasks_json, worker.running, worker.is_online) == ('{"fast":3}', '["work"]', 0, True)
    assert worker.jobs == ((job.id, "work", clock.now()),)
    assert held.id != job.id


async def test_a_heartbeat_is_noted(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    clock.advance(seconds=5)
    assert await store.workers.seen("ada", 3)
    [worker] = await store.workers.list()
    assert (worker.running, worker.seen_at) == (3, clock.now())
    assert worker.started_at == clock.now() - timedelta(seconds=5)


async def test_a_silent_worker_is_offline(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    clock.advance(seconds=59)
    [worker] = await store.workers.list()
    assert worker.is_online
    clock.advance(seconds=1)
    [worker] = await store.workers.list()
    assert not worker.is_online
    [worker] = await store.workers.list(offline_after=timedelta(minutes=5))
    assert worker.is_online


async def test_a_late_heartbeat_does_not_bring_a_stopped_worker_back(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    assert await store.workers.stopped("ada")
    assert not await store.workers.seen("ada", 1)
    [worker] = await store.workers.list()
    assert (worker.stopped_at, worker.running, worker.is_online) == (clock.now(), 0, False)
    await store.workers.register(ADA)
    [worker] = await store.workers.list()
    assert (worker.stopped_at, worker.is_online) == (None, True)


async def test_a_forgotten_worker_is_told_to_register_again(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    clock.advance(days=7)
    assert await store.workers.prune() == 0
    clock.advance(seconds=1)
    assert await store.workers.prune() == 1
    assert not await store.workers.seen("ada", 1)
    assert not await store.workers.stopped("ada")
    assert await store.workers.list() == []


async def test_a_paused_worker_is_told_so_with_its_heartbeat_until_it_is_resumed(store: Store, clock: FakeClock) -> None:
    await store.workers.register(ADA)
    assert await store.workers.seen("ada", 1) == SeenWorker(is_paused=False)
    paused = await store.acting(Actor("ann")).workers.pause("ada")
    assert (paused.paused_at, paused.paused_by, paused.is_online) == (clock.now(), "ann", True)
    clock.advance(seconds=5)
    assert (await store.acting(Actor("bob")).workers.pause("ada")).paused_by == "ann"
    assert await store.workers.seen("ada", 1, cpu_percent=40, memory_mb=120) == SeenWorker(is_paused=True)
    [worker] = await store.workers.list()
    assert (worker.paused_by, worker.cpu_percent, worker.memory_mb) == ("ann", 40, 120)
    assert (await store.workers.resume("ada")).paused_at is None
    assert await store.workers.seen("ada", 1) == SeenWorker(is_paused=False)
    actions = [(entry.principal, entry.action, entry.target) for entry in await store.audit.list()]
    assert ("ann", "pause worker", "worker:ada") in actions


async def test_a_new_process_under_the_same_name_claims_again(store: Store) -> None:
    await store.workers.register(ADA)
    await store.workers.pause("ada")
    await store.workers.register(ADA)
    assert await store.workers.seen("ada", 0) == SeenWorker(is_paused=False)


async def test_only_a_registered_worker_can_be_paused(store: Store) -> None:
    with pytest.raises(WorkerNotFound, match="worker 'ada' not found"):
        await store.workers.pause("ada")
    await store.workers.register(ADA)
    await store.workers.stopped("ada")
    with pytest.raises(WorkerNotFound):
        await store.workers.resume("ada")
    await store.workers.pulled({"eve": "10.0.0.1"})
    with pytest.raises(InvalidInput, match="asks for jobs over HTTP"):
        await store.workers.pause("eve")
    assert [one.paused_at for one in await store.workers.list()] == [None, None]


@pytest.mark.parametrize("wrong", [{"id": ""}, {"pid": -1}, {"pools": "[]"}, {"tasks": "{}"}, {"host": "a\0"}])
def test_bad_registrations_are_refused(wrong: dict[str, object]) -> None:
    [field] = wrong
    with pytest.raises(InvalidInput, match=field):
        NewWorker(**{"id": "a", "host": "h", "pid": 1, "version": "1", **wrong})  # type: ignore[arg-type]

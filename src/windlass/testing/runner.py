"""Runs what is due, here and now, by the rules of a worker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from random import Random
from typing import Any, TypeVar, cast

from windlass import __version__
from windlass.app import Windlass
from windlass.clock import DatabaseClock
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import JobState, WaitReason
from windlass.core.page import MAX_PAGE, JobQuery
from windlass.core.pool import EVERY_LANE, PoolSpec
from windlass.errors import JobFailed
from windlass.ports import Clock
from windlass.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.handlers import Errors, watched
from windlass.testing.ran import Ran
from windlass.testing.watch import Watch, first_failure
from windlass.worker.presence import Presence
from windlass.worker.program import Program, WorkerOptions
from windlass.worker.worker import Worker

T = TypeVar("T")

OF_LIFESPAN: Any = object()
_NAME = "windlass.testing"
_AT_MOST = 1000
_LOOK = timedelta(milliseconds=2)
_RETRIES = JobFilter(states=(StateFilter(JobState.SCHEDULED, frozenset({WaitReason.RETRY})),))


async def run_all(
    app: Windlass,
    *,
    retries: bool = False,
    raise_errors: bool = False,
    state: Any = OF_LIFESPAN,
    at_once: int = 1,
    at_most: int = _AT_MOST,
) -> list[Ran]:
    """Run every job that is due, also those that handlers enqueue, until none is; returns the runs in the order they ended.

    A failed job that is to be tried again waits for its time, unless `retries` brings it forward. `raise_errors` stops at the
    first failed run and raises what its handler raised, or JobFailed where it was cut short. `state` takes the place of what
    the lifespan would open. `at_once` jobs run side by side. Raises WindlassError when `at_most` runs were not enough.
    """
    opened: AbstractAsyncContextManager[Any] = app.open_state() if state is OF_LIFESPAN else nullcontext(state)
    async with opened as resources:
        watch = await _TestWorker(app, at_once).run(resources, retries=retries, at_most=at_most, stops_at_failure=raise_errors)
    if watch.problem is not None:
        raise watch.problem
    failed = first_failure(watch.ran) if raise_errors else None
    if failed is not None:
        raise failed.error or JobFailed(failed.job_id, "failed", failed.message)
    return watch.ran


def run_all_sync(app: Windlass, **options: Any) -> list[Ran]:
    """Do what `run_all` does, with its options, without an event loop."""
    return _in_own_thread(lambda: asyncio.run(_run_all_and_leave(app, options)))


async def _run_all_and_leave(app: Windlass, options: dict[str, Any]) -> list[Ran]:
    try:
        return await run_all(app, **options)
    finally:
        await app.leave()


def _in_own_thread(function: Callable[[], T]) -> T:
    # Not here: the caller may be inside a running loop, and a loop that ends here would take the thread's current one along.
    end: Future[T] = Future()

    def live() -> None:
        try:
            end.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again where the answer is awaited
            end.set_exception(error)

    threading.Thread(target=copy_context().run, args=(live,), name="windlass-run-all", daemon=True).start()
    return end.result()


class _TestWorker:
    """A worker for one call."""

    def __init__(self, app: Windlass, at_once: int) -> None:
        settings = app.settings
        self._app = app
        self._at_once = at_once
        self._options = WorkerOptions(
            pools=(PoolSpec(EVERY_LANE, at_once),),
            lease=settings.lease,
            poll_interval=_LOOK,
            # None ahead: a job is claimed when it can start, so that a more urgent one enqueued meanwhile goes first.
            prefetch=0,
            fast_timeout=settings.fast_timeout,
            timeout=settings.timeout,
            grace=settings.grace,
        )

    async def run(self, resources: Any, *, retries: bool, at_most: int, stops_at_failure: bool) -> Watch:
        store = await self._app.store()
        errors: Errors = {}
        watch = Watch(store, errors, in_turn=self._at_once == 1, at_most=at_most, stops_at_failure=stops_at_failure)
        worker = watch.worker = Worker(
            cast("Store", watch),
            await self._app.blocking_store(),
            Program(
                registry=watched(self._app.inside_middleware(self._app.registry), errors),
                hooks=self._app.hooks,
                profiles=self._app.settings.profiles,
                state=resources,
                tracing=self._app.tracing,
            ),
            clock=await _clock_of(store),
            rng=Random(0),  # noqa: S311 - a test runs the same way each time
            name=_NAME,
            options=self._options,
        )
        # Breakers hold back the tasks that are declared with them.
        await Presence(store, self._app.registry, self._options, name=_NAME, version=__version__).enter()
        await self._declare_schedules(store)
        await _make_due(store)
        await self._work(worker, watch, partial(_has_more, store, retries=retries))
        return watch

    async def _declare_schedules(self, store: Store) -> None:
        """Enter what the code declares as of the test's beginning: what has become due since then is run."""
        clock = await _clock_of(store)
        if isinstance(clock, FakeClock):
            store = store.at(FakeClock(clock.started_at))
        await store.schedules.declare(self._app.declared_schedules())

    async def _work(self, worker: Worker, watch: Watch, has_more: Callable[[], Any]) -> None:
        running = asyncio.create_task(worker.run(), name="windlass-run-all")
        running.add_done_callback(lambda _: watch.end())
        try:
            await watch.still.wait()
            while not watch.is_over and await has_more():
                watch.begin_again()
                worker.wake()
                await watch.still.wait()
        except BaseException:
            # A caller that gives up on the run does not want to wait for its handlers.
            worker.hurry()
            raise
        finally:
            worker.stop()
            await running


async def _clock_of(store: Store) -> Clock:
    clock = store.means.clock
    return DatabaseClock(await store.clock()) if clock is None else clock


async def _has_more(store: Store, *, retries: bool) -> bool:
    return await _make_due(store) or (retries and await _bring_retries_forward(store))


async def _make_due(store: Store) -> bool:
    """Do the chores that make jobs claimable; returns whether any is."""
    is_moved = False
    while await store.reclaim() or await store.spawn() or (await store.promote()).jobs:
        is_moved = True
    return is_moved


async def _bring_retries_forward(store: Store) -> bool:
    page = await store.list_jobs(JobQuery(filter=_RETRIES, limit=MAX_PAGE, is_descending=False))
    if page.jobs:
        await store.run_now([job.id for job in page.jobs])
    return bool(page.jobs)

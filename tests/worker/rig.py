"""A bench for workers: declare tasks, enqueue, run, look."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable
from datetime import timedelta
from random import Random
from typing import Any

from windlass.clock import DatabaseClock
from windlass.core.hooks import Hooks
from windlass.core.job import Execution, Job, JobState, NewJob, RunStatus
from windlass.core.outcome import Decide, decide
from windlass.core.payload import encode_object
from windlass.core.pool import parse_pools
from windlass.core.task import Isolation, Registry, TaskSpec
from windlass.store import open_blocking_store, open_store
from windlass.upkeep.loop import Upkeep, UpkeepOptions
from windlass.worker.presence import Presence
from windlass.worker.program import Program, WorkerOptions
from windlass.worker.replacement import Replacement
from windlass.worker.worker import Worker

PATIENCE_S = 20.0
SOON = timedelta(milliseconds=200)


class Rig:
    def __init__(self, url: str, rng: Random) -> None:
        self.url = url
        self.rng = rng
        self.store = open_store(url, rng=rng)
        self.blocking_store = open_blocking_store(url, rng=rng)
        self.registry = Registry()
        self.hooks = Hooks()
        self.workers: list[tuple[Worker, asyncio.Task[None], asyncio.Task[None]]] = []

    def task(self, function: Callable[..., Any], **options: Any) -> TaskSpec:
        kind = Isolation.ASYNC if inspect.iscoroutinefunction(function) else Isolation.THREAD
        options.setdefault("isolation", kind)
        takes_context = next(iter(inspect.signature(function).parameters), "") == "ctx"
        name = options.pop("name", function.__name__)
        spec = TaskSpec(name=name, function=function, arguments=json.loads, takes_context=takes_context, **options)
        self.registry.add(spec)
        return spec

    async def enqueue(self, task: str, payload: dict[str, Any] | None = None, **options: Any) -> int:
        [enqueued] = await self.store.enqueue([NewJob(task=task, payload=encode_object(payload or {}), **options)])
        return enqueued.id

    async def start(
        self,
        *,
        state: Any = None,
        name: str = "worker-1",
        target: str | None = None,
        decide: Decide = decide,
        replacement: Replacement | None = None,
        **options: Any,
    ) -> Worker:
        pools = parse_pools(options.pop("pools", "fast=1,*=3"))
        chosen = {"poll_interval": SOON, "lease": timedelta(seconds=2), "stop_grace": timedelta(milliseconds=300)} | options
        clock = DatabaseClock(await self.store.clock())
        worker = Worker(
            self.store,
            self.blocking_store,
            Program(registry=self.registry, hooks=self.hooks, state=state, target=target),
            clock=clock,
            rng=self.rng,
            name=name,
            options=WorkerOptions(pools=pools, **chosen),
            decide=decide,
            replacement=replacement,
        )
        await Presence(self.store, self.registry, WorkerOptions(pools=pools), name=name, version="test").enter()
        upkeep = Upkeep(
            self.store,
            clock=clock,
            promoted=worker.wake,
            options=UpkeepOptions(lease=chosen["lease"], poll_interval=SOON, reclaim_interval=SOON),
        )
        self.workers.append((worker, asyncio.create_task(worker.run()), asyncio.create_task(upkeep.run())))
        return worker

    async def stop(self) -> None:
        for worker, task, upkeep in self.workers:
            worker.stop()
            upkeep.cancel()
            async with asyncio.timeout(PATIENCE_S):
                await task
            await asyncio.gather(upkeep, return_exceptions=True)
        self.workers.clear()

    async def aclose(self) -> None:
        for _, task, upkeep in self.workers:
            for one in (task, upkeep):
                one.cancel()
            await asyncio.gather(task, upkeep, return_exceptions=True)
        await self.store.aclose()
        await self.blocking_store.aclose()

    async def until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not await condition():  # noqa: ASYNC110 - the condition is in the database
                await asyncio.sleep(0.01)

    async def ended(self, job_id: int, *states: JobState) -> Job:
        """Wait until a job is in one of these states: by default, until it is over."""
        wanted = states or (JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED)

        async def over() -> bool:
            return (await self.store.get(job_id)).state in wanted

        await self.until(over)
        return await self.store.get(job_id)

    async def executions(self, job_id: int) -> list[Execution]:
        """Give the runs that have ended, newest first."""
        return [run for run in await self.store.list_executions(job_id) if run.status is not RunStatus.RUNNING]

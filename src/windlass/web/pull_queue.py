"""Where pull workers wait for jobs: one look at the queue for all of them, first come, first served."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from windlass.app import Windlass
from windlass.core.job import Claimed, Slices
from windlass.core.pull import MAX_PULLS, PickOrder, Pull
from windlass.core.topic import Topic
from windlass.errors import StoreError
from windlass.store import Store
from windlass.store.wakeups import SqlWakeups
from windlass.telemetry import LOG_EVERY_S, LogThrottle
from windlass.web.pull_settings import PullSettingsCache

log = logging.getLogger("windlass.web")

_AFTER_FAILURE_S = 0.25
_LAST_RETURNS_S = 2.0


@dataclass(slots=True, eq=False)
class WaitingPull:
    """A worker that waits for a job; its answer is a job, or nothing once it need not wait longer."""

    pull: Pull
    is_patient: bool
    answer: asyncio.Future[Claimed | None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    is_new: bool = True
    is_in_hand: bool = False
    """Whether a job is being taken for it at this moment."""

    def close(self, job: Claimed | None = None) -> None:
        """Answer, unless that was done."""
        if not self.answer.done():
            self.answer.set_result(job)


class _Held(NamedTuple):
    """The pulls that are served together, and from what."""

    slices: Slices
    order: PickOrder
    waiters: Sequence[WaitingPull]


class PullQueue:
    """Serves all pulls that wait at this server, in rounds: a wake-up, a new pull or the poll interval starts one."""

    def __init__(self, app: Windlass, pull_settings: PullSettingsCache, stopping: asyncio.Event) -> None:
        """Serve from the application's store, until `stopping` is set."""
        self._app = app
        self._pull_settings = pull_settings
        self._stopping = stopping
        self._waiting: list[WaitingPull] = []
        self._unclaimed: list[Claimed] = []
        """Jobs that were taken for workers that have disconnected."""
        self._wake = asyncio.Event()
        self._throttle = LogThrottle(LOG_EVERY_S)
        self._heard: SqlWakeups | None = None

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Serve in the background for as long as the block lasts."""
        store = await self._app.store()
        async with store.wakeups as wakeups:
            if wakeups is not self._heard:
                wakeups.subscribe(self._hear)
                self._heard = wakeups
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._serve(store)), group.create_task(self._close())]
                try:
                    yield
                finally:
                    self._send_home()
                    for task in tasks:
                        task.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_RETURNS_S):
                    await self._return_unclaimed(store)

    async def take(self, pull: Pull, *, wait_s: float, gone: asyncio.Future[None]) -> Claimed | None:
        """Return a job within the time, or None; a pull that is `gone` loses its place, and a job taken for it goes back."""
        pull.check()
        if self._stopping.is_set():
            return None
        waiter = WaitingPull(pull, wait_s > 0)
        self._waiting.append(waiter)
        self._wake.set()
        job = None
        try:
            either: set[asyncio.Future[Any]] = {waiter.answer, gone}
            await asyncio.wait(either, timeout=wait_s or None, return_when=asyncio.FIRST_COMPLETED)
            if waiter.is_in_hand and not gone.done():
                # What is being taken for it now would have no owner if it left.
                waiter.is_patient = False
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                waiter.close()
                job = waiter.answer.result()
        finally:
            self._leave(waiter, job)
        return job

    def _leave(self, waiter: WaitingPull, kept: Claimed | None) -> None:
        with suppress(ValueError):
            self._waiting.remove(waiter)
        waiter.close()
        if kept is None and waiter.answer.exception() is None:
            self._put_back(waiter.pull, waiter.answer.result())

    def _put_back(self, pull: Pull, job: Claimed | None) -> None:
        """Release the job of a pull that has disconnected; with a `pull_id` it is kept for the pull that asks again."""
        if job is not None and pull.pull_id is None:
            self._unclaimed.append(job)
            self._wake.set()

    def _hear(self, topic: Topic) -> None:
        if topic is Topic.WORK:
            self._wake.set()

    async def _close(self) -> None:
        await self._stopping.wait()
        self._send_home()

    def _send_home(self) -> None:
        for waiter in self._waiting:
            waiter.is_patient = False
            if not waiter.is_in_hand:
                waiter.close()

    async def _serve(self, store: Store) -> None:
        poll_s = self._app.settings.poll_interval.total_seconds()
        while True:
            # Cleared before looking, so that nothing that comes after the look is missed.
            self._wake.clear()
            pause = poll_s
            try:
                await self._return_unclaimed(store)
                await self._round(store)
            except Exception as error:  # noqa: BLE001 - one bad round must not leave every worker without jobs
                if self._throttle.is_due("pull"):
                    log.warning("no jobs can be pulled: %s: %s", type(error).__name__, error)
                self._refuse(error)
                pause = _AFTER_FAILURE_S
            await self._pause(pause if self._waiting else None)

    async def _pause(self, seconds: float | None) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()

    async def _round(self, store: Store) -> None:
        """Look once for all pulls, and serve those that may get a job."""
        present = [waiter for waiter in self._waiting if not waiter.answer.done()]
        if not present:
            return
        slices = await store.slices()
        # Most ask for the same.
        hopes = {waiter.pull.wanted: waiter.pull for waiter in present}
        open_to = {wanted for wanted, pull in hopes.items() if pull.select(slices).open}
        # A new pull may ask for a lease that it has already.
        hopeful = [waiter for waiter in present if waiter.pull.wanted in open_to or (waiter.is_new and waiter.pull.pull_id)]
        order = (await self._pull_settings.current()).order if hopeful else PickOrder.FIFO
        # Nothing is awaited between this check of which pulls still wait and the claim: none can leave in between.
        while hopeful := [waiter for waiter in hopeful if not waiter.answer.done()]:
            held = _Held(slices, order, hopeful[:MAX_PULLS])
            hopeful = hopeful[await self._hand_out(store, held) :]
        for waiter in present:
            waiter.is_new = False
            if not waiter.is_patient:
                waiter.close()

    async def _hand_out(self, store: Store, held: _Held) -> int:
        """Take jobs for the first of these; returns for how many it has tried."""
        for waiter in held.waiters:
            waiter.is_in_hand = True
        try:
            taken = await store.pull_each([waiter.pull for waiter in held.waiters], held.order, found=held.slices)
        finally:
            for waiter in held.waiters:
                waiter.is_in_hand = False
        for waiter, job in zip(held.waiters, taken, strict=False):
            if waiter.answer.done():
                self._put_back(waiter.pull, job)
            elif job is not None:
                waiter.close(job)
        return len(taken)

    def _refuse(self, error: Exception) -> None:
        """Answer the pulls that do not wait with the error; the others may outlast it."""
        for waiter in self._waiting:
            if not waiter.is_patient and not waiter.answer.done():
                waiter.answer.set_exception(error)

    async def _return_unclaimed(self, store: Store) -> None:
        while self._unclaimed:
            job = self._unclaimed.pop()
            try:
                await store.give_back(job)
            except StoreError as error:
                log.warning("job %d was taken for a worker that has gone; it waits for its lease to end: %s", job.id, error)

"""The application under attack: each handler leaves a line in the ledger when it starts and when it ends."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

from tests.faults.ledger import ledger_of_environment, now_ns
from tests.faults.reasons import STUCK_TIMEOUT_S
from windlass import JobContext, Windlass
from windlass.core.current import current_job
from windlass.core.retry import RetrySpec

app = Windlass(name="faults")
ledger = ledger_of_environment()

_TICK_S = 0.1
_STALL_S = 0.6
# High enough that no job dies of the faults alone; a dead letter is then a finding.
_PATIENT = 30
# Of short jobs, which faults seldom meet more than once: what is charged to them wrongly soon shows as a dead letter.
_FEW = 3
_SOON = RetrySpec(base=timedelta(milliseconds=200), cap=timedelta(seconds=1))


@contextmanager
def noted(ctx: JobContext) -> Iterator[None]:
    """Write the start and the end of a run; a run without an end was cut off with its process."""
    job = current_job()
    token = 0 if job is None else job.token
    ledger.write("start", ctx.job_id, token, ctx.execution, ctx.attempt, ctx.task, os.getppid())
    how = "ok"
    try:
        yield
    except asyncio.CancelledError:
        how = "stopped"
        raise
    except BaseException:
        how = "raised"
        raise
    finally:
        ledger.write("end", ctx.job_id, token, how)


def watch_process() -> None:
    """Write down when this process could not run: frozen, starved, or its interpreter held by one call."""
    while True:
        before = now_ns()
        time.sleep(_TICK_S)
        if now_ns() - before > (_TICK_S + _STALL_S) * 1e9:
            ledger.write("stalled", before)


async def watch_loop() -> None:
    """Write down when the event loop could not run."""
    while True:
        before = now_ns()
        await asyncio.sleep(_TICK_S)
        if now_ns() - before > (_TICK_S + _STALL_S) * 1e9:
            ledger.write("blocked", before)


def note_exec(event: str, _: object) -> None:
    """Write down that this process starts itself anew: it keeps its number, and nothing of what ran in it goes on."""
    if event == "os.exec":
        ledger.write("anew")


@app.lifespan
@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    ledger.open()
    ledger.write("opened", os.getppid())
    sys.addaudithook(note_exec)
    threading.Thread(target=watch_process, daemon=True).start()
    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch_loop())
        yield
        watcher.cancel()


@app.task(max_attempts=_FEW, retry=_SOON)
async def quick(ctx: JobContext) -> None:
    with noted(ctx):
        pass


@app.task(max_attempts=_PATIENT, retry=_SOON)
async def nap(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        await asyncio.sleep(seconds)


@app.task(max_attempts=_FEW, retry=_SOON)
def quick_thread(ctx: JobContext) -> None:
    with noted(ctx):
        pass


@app.task(max_attempts=_FEW, retry=_SOON)
def nap_thread(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        wait(ctx, seconds)


@app.task(max_attempts=_FEW, retry=_SOON, isolation="process")
def nap_process(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        wait(ctx, seconds)


@app.task(max_attempts=_FEW, retry=_SOON, exclusive=True)
async def exclusive_quick(ctx: JobContext) -> None:
    with noted(ctx):
        pass


@app.task(max_attempts=_PATIENT, retry=_SOON, exclusive=True)
async def exclusive_nap(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        await asyncio.sleep(seconds)


@app.task(max_attempts=_FEW, retry=_SOON, exclusive=True)
def exclusive_thread(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        wait(ctx, seconds)


@app.task(max_attempts=_PATIENT, retry=_SOON)
async def flaky(ctx: JobContext, failures: int) -> None:
    with noted(ctx):
        if ctx.attempt <= failures:
            raise ConnectionError("not yet")


@app.task(max_attempts=2, retry=_SOON)
async def doomed(ctx: JobContext) -> None:
    with noted(ctx):
        raise ValueError("never")


@app.task(max_attempts=_PATIENT, retry=_SOON, unique_scope="active")
async def keyed(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        await asyncio.sleep(seconds)


@app.task(max_attempts=3, retry=_SOON)
async def killer(ctx: JobContext, way: str) -> None:
    with noted(ctx):
        # Reported as started, as a job is that kills its process after a while.
        await asyncio.sleep(0.05)
        if way == "segfault":
            ctypes.string_at(0)
        os._exit(9)


@app.task(max_attempts=_PATIENT, retry=_SOON)
async def blocker(ctx: JobContext, seconds: float) -> None:
    with noted(ctx):
        time.sleep(seconds)  # noqa: ASYNC251 - what a careless handler does


@app.task(max_attempts=_FEW, retry=_SOON, timeout=timedelta(seconds=STUCK_TIMEOUT_S))
async def stuck(ctx: JobContext, seconds: float) -> None:
    """Block the event loop beyond the timeout, so that the process must be replaced; only once."""
    with noted(ctx):
        if ctx.attempt == 1:
            time.sleep(seconds)  # noqa: ASYNC251 - what a careless handler does


@app.task(max_attempts=_PATIENT, retry=_SOON)
def hog(ctx: JobContext, seconds: float) -> None:
    """Hold the interpreter in one call, as a long calculation in C does."""
    with noted(ctx):
        ctypes.PyDLL(None).usleep(round(seconds * 1e6))


@app.task(every="2s", max_attempts=_PATIENT, retry=_SOON)
async def tick(ctx: JobContext) -> None:
    with noted(ctx):
        await asyncio.sleep(0.02)


@app.task(every="3s", fixed_rate=True, max_attempts=_PATIENT, retry=_SOON)
def tock(ctx: JobContext) -> None:
    with noted(ctx):
        time.sleep(0.02)


@app.task(every="2s", spawn=True, overlap="allow", max_attempts=_PATIENT, retry=_SOON)
async def spawned(ctx: JobContext) -> None:
    with noted(ctx):
        await asyncio.sleep(0.02)


def wait(ctx: JobContext, seconds: float) -> None:
    """Sleep in a function, and stop when asked to."""
    until = time.monotonic() + seconds
    while not ctx.cancelled and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.05))
    if ctx.cancelled:
        raise InterruptedError("told to stop")

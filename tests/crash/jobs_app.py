"""An application whose handlers leave a line in a ledger for everything they do."""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from datetime import timedelta
from pathlib import Path

from windlass import BreakerSpec, JobContext, Windlass

app = Windlass()
LEDGER = Path(os.environ.get("WINDLASS_TEST_LEDGER", os.devnull))


def note(word: str, job: int) -> None:
    """Write a line in one piece, whoever else writes."""
    line = os.open(LEDGER, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(line, f"{word} {job} {os.getpid()}\n".encode())
    finally:
        os.close(line)


def is_marked(word: str) -> bool:
    """Whether the test has said so."""
    return Path(f"{LEDGER}.{word}").exists()


@app.task
async def work(ctx: JobContext, seconds: float = 0.0) -> None:
    note("start", ctx.job_id)
    await asyncio.sleep(seconds)
    note("end", ctx.job_id)


@app.task
async def broken() -> None:
    raise RuntimeError("still broken")


@app.task
async def tick() -> None:
    """Leave no line: there are thousands, and each leaves an execution."""
    await asyncio.sleep(0.02)


@app.task
async def patient(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    try:
        while not is_marked("release"):  # noqa: ASYNC110 - the test speaks through a file
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        note("told", ctx.job_id)
        raise
    note("end", ctx.job_id)


@app.task(exclusive=True)
async def once(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    await asyncio.sleep(0.005)
    note("end", ctx.job_id)


@app.task(exclusive=True)
def once_in_thread(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    time.sleep(0.005)
    note("end", ctx.job_id)


@app.task
def work_in_thread(ctx: JobContext, seconds: float = 0.0) -> None:
    note("start", ctx.job_id)
    time.sleep(seconds)
    note("end", ctx.job_id)


@app.task
def patient_in_thread(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    while not is_marked("release"):
        time.sleep(0.02)
    note("end", ctx.job_id)


@app.task
def poison_in_thread(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    while not is_marked("kill"):
        time.sleep(0.02)
    ctypes.string_at(0)


@app.task
async def late_poison(ctx: JobContext) -> None:
    """Kill the process once the test has seen it full of other jobs."""
    note("start", ctx.job_id)
    while not is_marked("kill"):  # noqa: ASYNC110 - the test speaks through a file
        await asyncio.sleep(0.02)
    ctypes.string_at(0)


@app.task
async def poison(ctx: JobContext, way: str) -> None:
    note("start", ctx.job_id)
    if way == "segfault":
        ctypes.string_at(0)
    os._exit(9)


@app.task(breaker=BreakerSpec("service", threshold=1_000))
async def guarded(ctx: JobContext) -> None:
    note("start", ctx.job_id)
    await asyncio.sleep(0.3)
    if not is_marked("well"):
        raise ConnectionError("down")
    note("end", ctx.job_id)


@app.task(timeout=timedelta(seconds=1))
async def stuck(ctx: JobContext) -> None:
    """Block the event loop and outlive the timeout."""
    note("start", ctx.job_id)
    time.sleep(300)  # noqa: ASYNC251 - what this is about


@app.task(lane="slow")
async def blocks(ctx: JobContext, seconds: float) -> None:
    """Block the event loop for a while."""
    note("start", ctx.job_id)
    time.sleep(seconds)  # noqa: ASYNC251 - what this is about
    note("end", ctx.job_id)

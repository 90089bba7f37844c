"""An application whose tasks run in a remote worker."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from typing import Any

from windlass import Cancel, Discard, JobContext, Retry, Snooze, Windlass
from windlass.core.breaker import BreakerSpec
from windlass.core.payload import MAX_DEPTH

app = Windlass(name="remote-app", grace="0.5s", lease_seconds="1s")

go = threading.Event()
"""What `until_told` waits for."""
stopped: list[int] = []
"""Jobs whose handlers saw that they are to end."""


@app.lifespan
async def opened() -> Any:
    yield {"opened": True}


@app.task(lane="pull")
async def add(ctx: JobContext, a: int, b: int) -> dict[str, Any]:
    return {"sum": a + b, "subject": ctx.subject, "state": ctx.state, "lane": ctx.lane, "pid": os.getpid()}


@app.task(lane="pull")
def in_thread(ctx: JobContext, count: int) -> int:
    added = ctx.items_sync({"phone": str(place)} for place in range(count))
    ctx.progress_sync(count=7, cursor="half", message="half way")
    return added.added


@app.task(lane="pull", isolation="process")
def alone(ctx: JobContext) -> list[Any]:
    added = ctx.items_sync([{"phone": "1"}, {"phone": "1"}])
    return [os.getpid(), added.added, added.duplicates]


@app.task(lane="pull", breaker=BreakerSpec("service", threshold=3))
async def calls() -> None:
    raise ConnectionError("down")


@app.task(lane="other")
async def beyond(n: int) -> int:
    return n


@app.task(lane="pull")
async def fails(ctx: JobContext, how: str) -> Any:
    match how:
        case "retry" if ctx.attempt == 1:
            raise Retry(after="0.01s")
        case "snooze" if ctx.execution == 1:
            raise Snooze(for_="0.01s")
        case "discard":
            raise Discard("no use")
        case "cancel":
            raise Cancel("not wanted")
        case "oddly":
            print_oddly()
            raise ValueError("\ud800 and \0")
        case "deeply":
            return nested()
        case "always":
            raise ValueError(f"number {ctx.attempt}")
    return f"attempt {ctx.attempt}"


def print_oddly() -> None:
    logging.getLogger("shop").warning("a NUL: \0")


def nested() -> Any:
    """Give the deepest value that a result may be, which is too deep for a report that wraps it."""
    value: Any = 1
    for _ in range(MAX_DEPTH - 1):
        value = [value]
    return value


@app.task(lane="pull", timeout="0.2s")
async def sleeps() -> None:
    await asyncio.sleep(60)


@app.task(lane="pull")
async def hangs(ctx: JobContext) -> None:
    await ctx.progress(message="began")
    await asyncio.sleep(60)


@app.task(lane="pull")
def waits(ctx: JobContext) -> str:
    """Run until somebody wants it to end, and leave word of it."""
    ctx.progress_sync(message="began")
    for _ in range(2000):
        if ctx.cancelled:
            stopped.append(ctx.job_id)
            return "told to stop"
        time.sleep(0.01)
    return "nobody came"


@app.task(lane="pull")
def until_told(ctx: JobContext) -> str:
    ctx.progress_sync(message="began")
    go.wait(20)
    return "told"


@app.task(lane="pull")
def again(ctx: JobContext) -> None:
    ctx.run_again(after="2h")

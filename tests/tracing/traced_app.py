"""An application that is traced, in the worker and in its child processes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from windlass import JobContext, Windlass
from windlass.telemetry import fields_of

app = Windlass(name="traced-app", otel=True, grace="1s", lease_seconds=2, retry_base="10ms", retry_jitter=0)


def seen() -> dict[str, Any]:
    """Return what code in a handler finds: the current span, a span of its own, and what its log lines carry."""
    here = trace.get_current_span().get_span_context()
    with TracerProvider(shutdown_on_exit=False).get_tracer("handler").start_as_current_span("inside") as span:
        inside: Any = span
    return {
        "trace_id": f"{here.trace_id:032x}",
        "span_id": f"{here.span_id:016x}",
        "inside": [f"{inside.context.trace_id:032x}", None if inside.parent is None else f"{inside.parent.span_id:016x}"],
        "logged": fields_of(logging.makeLogRecord({})),
    }


@app.task
async def in_loop() -> dict[str, Any]:
    await asyncio.sleep(0)
    return seen()


@app.task
def in_thread() -> dict[str, Any]:
    return seen()


@app.task(isolation="process")
def in_process() -> dict[str, Any]:
    return seen()


@app.task(isolation="process")
async def in_process_loop() -> dict[str, Any]:
    await asyncio.sleep(0)
    return seen()


@app.task(isolation="process")
async def parent_apart() -> None:
    await in_loop.enqueue()


@app.task
async def parent() -> None:
    await in_loop.enqueue()


@app.task(max_attempts=2)
async def fails_at_first(ctx: JobContext) -> None:
    if ctx.attempt == 1:
        raise ValueError("not yet")


@app.task(max_attempts=1)
def fails() -> None:
    raise LookupError("nothing there")


@app.task(isolation="process", max_attempts=1)
def dies() -> None:
    raise SystemExit(3)


@app.task(timeout=0.1, max_attempts=1)
async def sleeps() -> None:
    await asyncio.sleep(60)


@app.task
async def waits() -> None:
    await asyncio.sleep(60)

"""An application whose failed jobs become events in Sentry; set SENTRY_DSN to send them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import sentry_sdk
from sentry_sdk.integrations.logging import ignore_logger

from windlass import EndEvent, JobState, Windlass

EVERY_TRY = False
"""Whether a failed run that is tried again is reported too."""

app = Windlass(os.environ.get("WINDLASS_DATABASE_URL", "sqlite:///:memory:"), retry_base="10ms")


def start_sentry(**options: Any) -> None:
    """Set Sentry up; without a DSN it sends nothing."""
    sentry_sdk.init(**{"dsn": os.environ.get("SENTRY_DSN"), **options})
    # The worker logs each failed run as an error, also one that is tried again; Sentry would make an event of each line.
    ignore_logger("windlass.worker")


@app.on("fail")
def report(event: EndEvent) -> None:
    """Send an event for a job that has failed for good."""
    if event.state is not JobState.FAILED and not EVERY_TRY:
        return
    with sentry_sdk.new_scope() as scope:
        tags = {"task": event.task, "lane": event.lane, "job_id": event.job_id, "attempt": event.attempt}
        scope.set_tags({name: str(value) for name, value in tags.items()})
        scope.set_context("job", {"correlation_id": event.correlation_id, "worker": event.worker, "state": event.state.value})
        if event.exception is not None:
            sentry_sdk.capture_exception(event.exception)
        else:
            # It timed out, or it ran in a process of its own: there is no exception here, only its text.
            scope.set_extra("traceback", event.traceback)
            sentry_sdk.capture_message(event.error or "failed", level="error")


@app.task(max_attempts=3)
async def greet(name: str) -> str:
    """Fail for a name without a greeting."""
    return {"ann": "Hello Ann", "bob": "Hello Bob"}[name]


@app.task(max_attempts=2, timeout=0.1)
async def linger() -> None:
    """Fail with something else than an exception: take too long."""
    await asyncio.sleep(60)

"""Runs three jobs, two of which fail for good, and shows the events that Sentry would get.

Run it with `python examples/sentry_errors/run.py`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from app import app, greet, linger, start_sentry
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from windlass import JobFailed


class PrintingTransport(Transport):
    """Prints events in place of sending them."""

    def capture_envelope(self, envelope: Envelope) -> None:
        """Print what matters of an event."""
        event: Any = envelope.get_event()
        if event is not None:
            error = event["exception"]["values"][0] if "exception" in event else {"type": "message", "value": event["message"]}
            print(f"event: {error['type']}: {error['value']} {event['tags']}")


async def main() -> None:
    """Show which failures become events."""
    logging.getLogger("windlass.worker").setLevel(logging.CRITICAL)
    start_sentry(dsn="https://key@sentry.invalid/1", transport=PrintingTransport())
    async with app, app.working():
        for job in [await greet.enqueue(name="ann"), await greet.enqueue(name="eve"), await linger.enqueue()]:
            try:
                print(f"job {job.id}: {await app.wait(job, timeout=30)}")
            except JobFailed as error:
                print(error)


asyncio.run(main())

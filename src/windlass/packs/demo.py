"""A lively sample for `windlass up --demo`: made-up jobs that only wait, count and fail, and never leave the machine."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from windlass.app import Windlass
from windlass.core.breaker import BreakerSpec
from windlass.worker.context import JobContext

log = logging.getLogger("windlass.packs.demo")

# One day of history: somebody will leave it running.
app = Windlass(name="windlass-demo", keep_days=1)

PARTNER = BreakerSpec("demo-partner", threshold=3, open_for=timedelta(seconds=15))
_CUSTOMERS = ("ann", "bob", "eve", "joe", "zoe")
_PAGES = 8


class PartnerDown(Exception):
    """The made-up partner does not answer."""


@app.task(name="demo-mail", lane="fast")
async def mail(to: str) -> str:
    """Be quick."""
    await asyncio.sleep(0.3)
    return f"written to {to}, not sent: this is a demo"


@app.task(name="demo-report", lane="slow")
async def report(ctx: JobContext, month: int) -> dict[str, int]:
    """Take a few seconds, and say how far it is."""
    for page in range(1, _PAGES + 1):
        await asyncio.sleep(0.6)
        await ctx.progress(count=page, message=f"page {page} of {_PAGES}")
    return {"month": month, "pages": _PAGES}


@app.task(name="demo-flaky", lane="fast", max_attempts=4, retry={"base": "2s", "cap": "10s"})
async def flaky(ctx: JobContext, fails: int) -> str:
    """Fail some times, then succeed."""
    await asyncio.sleep(0.2)
    if ctx.attempt <= fails:
        raise ConnectionError(f"demo: no luck in try {ctx.attempt}")
    return f"worked in try {ctx.attempt}"


@app.task(name="demo-doomed", max_attempts=2, retry={"base": "3s"})
async def doomed(order: int) -> None:
    """Fail for good: each leaves a dead letter."""
    await asyncio.sleep(0.3)
    raise ValueError(f"demo: order {order} has no address")


@app.task(name="demo-partner", max_attempts=6, retry={"base": "2s", "cap": "20s"}, breaker=PARTNER)
async def partner(ctx: JobContext, order: int, fails: int = 0) -> str:
    """Call a service that is down now and then: the breaker opens and holds the rest back."""
    await asyncio.sleep(0.1)
    if ctx.attempt <= fails:
        raise PartnerDown("demo: the partner does not answer")
    return f"order {order} is known"


@app.task(name="demo-beat", every="1s")
async def beat(ctx: JobContext) -> None:
    """Keep a small steady load: about one and a half jobs a second."""
    number = ctx.execution
    await mail.enqueue(to=f"{_CUSTOMERS[number % len(_CUSTOMERS)]}@example.org")
    if number % 4 == 0:
        await partner.enqueue(order=number)
    if number % 60 == 45:  # noqa: PLR2004 - once a minute or so, and not in the first moments
        # As many failures in a row as the breaker takes.
        await partner.enqueue_many([{"order": number, "fails": 1}] * PARTNER.threshold)
    if number % 7 == 0:
        await flaky.enqueue(fails=number % 3)
    if number % 6 == 0:
        await report.enqueue(month=number % 12 + 1)
    if number % 30 == 0:
        await doomed.enqueue(order=number)


@app.task(name="demo-hourly", cron="0 * * * *")
async def hourly() -> None:
    """Be there to be seen: waits for the full hour."""
    log.info("demo: an hour has gone by")

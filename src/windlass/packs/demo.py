"""A lively sample for `windlass up --demo`: made-up jobs that only wait, count and fail, and never leave the machine."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

from windlass.app import Windlass
from windlass.core.breaker import BreakerSpec
from windlass.worker.context import JobContext

log = logging.getLogger("windlass.packs.demo")

# One day of history: it may be left running for long. What fails here fails on purpose, and needs no alert.
app = Windlass(name="windlass-demo", keep_days=1, alerts="error_rate=off;failed_rate=off")

# Longer than the time between two looks at alerts: one that is seen every other time would be cleared and raised again.
PARTNER = BreakerSpec("demo-partner", threshold=3, open_for=timedelta(seconds=25))
_CUSTOMERS = ("ann", "bob", "eve", "joe", "zoe")
_PAGES = 8


class PartnerDown(Exception):
    """The made-up partner does not answer."""


class NoAddress(Exception):
    """A made-up order cannot be sent anywhere."""


@app.task(name="demo-mail", lane="fast", subject=lambda to: to)
async def mail(to: str) -> str:
    """Be quick."""
    await asyncio.sleep(0.3)
    return f"written to {to}, not sent: this is a demo"


@app.task(name="demo-report", lane="slow")
async def report(ctx: JobContext, month: int) -> dict[str, int]:
    """Take a few seconds, log and report how far it is, and keep an item for each page."""
    for page in range(1, _PAGES + 1):
        await asyncio.sleep(0.6)
        log.info("demo: page %d of month %d is written", page, month)
        await ctx.items([{"month": month, "page": page, "orders": month * page}])
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
    try:
        _address_of(order)
    except KeyError as error:
        raise NoAddress(f"demo: order {order} cannot be sent") from error


def _address_of(order: int) -> str:
    addresses: dict[int, str] = {}
    return addresses[order]


@app.task(name="demo-order")
async def order(number: int, to: str) -> str:
    """Enqueue what follows of it: one action, a tree of jobs."""
    await asyncio.sleep(0.2)
    await mail.enqueue(to=to)
    await parcel.enqueue(number=number, to=to)
    return f"order {number} is taken"


@app.task(name="demo-parcel", lane="slow")
async def parcel(number: int, to: str) -> str:
    """Be the branch of a tree."""
    await asyncio.sleep(1)
    await mail.enqueue(to=to)
    return f"order {number} is packed"


@app.task(name="demo-partner", max_attempts=6, retry={"base": "2s", "cap": "20s"}, breaker=PARTNER)
async def partner(ctx: JobContext, order: int, fails: int = 0) -> str:
    """Call a service that is down now and then: the breaker opens and holds the rest back."""
    await asyncio.sleep(0.1)
    if ctx.attempt <= fails:
        raise PartnerDown("demo: the partner does not answer")
    return f"order {order} is known"


@app.task(name="demo-beat", every="1s")
async def beat(ctx: JobContext) -> None:
    """Keep a small steady load, about two jobs a second; everything there is to see comes within the first beats."""
    number = ctx.execution
    to = f"{_CUSTOMERS[number % len(_CUSTOMERS)]}@example.org"
    together = f"demo-{number}"
    await mail.using(correlation_id=together).enqueue(to=to)
    for every, first, task, payload in (
        (4, 0, partner, {"order": number}),
        (6, 2, report.using(target_count=_PAGES), {"month": number % 12 + 1}),
        (7, 4, flaky, {"fails": number % 3}),
        (10, 3, order, {"number": number, "to": to}),
        (30, 2, doomed, {"order": number}),
    ):
        if number % every == first:
            await task.using(correlation_id=together).enqueue_many([payload])
    if number % 60 == 5:  # noqa: PLR2004 - once a minute
        # As many failures in a row as the breaker takes.
        await partner.enqueue_many([{"order": number, "fails": 1}] * PARTNER.threshold)


@app.task(name="demo-hourly", cron="0 * * * *")
async def hourly() -> None:
    """Be there to be seen: waits for the full hour."""
    log.info("demo: an hour has gone by")

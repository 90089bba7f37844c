"""`renew_websub`: renews once a day the subscriptions that would soon end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

from windlass.app import Windlass
from windlass.core.feed import Feed
from windlass.core.retry import RetrySpec
from windlass.errors import WindlassError
from windlass.packs.feeds.hubs import HubRefused, Hubs
from windlass.packs.outgoing import OutgoingError

TASK = "renew_websub"
EVERY = "1d"
_RETRY = RetrySpec(base=timedelta(minutes=10), cap=timedelta(hours=2))


class RenewalFailed(WindlassError):
    """Some hubs did not take the renewal."""


def declare(app: Windlass, hubs: Hubs) -> None:
    """Declare the task and its schedule."""

    @app.task(name=TASK, every=EVERY, retry=_RETRY)
    async def renew_websub() -> dict[str, int]:
        """Renew every subscription at a hub that ends within 24 hours; failures count on this job, as no feed has failed."""
        return {"asked": await renew(app, hubs) if hubs.is_on else 0}


async def renew(app: Windlass, hubs: Hubs) -> int:
    """Ask the hubs of all whose time ends; returns how many. Raises RenewalFailed after the last, if any refused."""
    asked = 0
    problems: list[str] = []
    async for feed in _expiring(app):
        asked += 1
        try:
            await hubs.ask(feed)
        except (HubRefused, OutgoingError) as error:
            problems.append(f"feed {feed.id}: {error}")
    if problems:
        raise RenewalFailed(f"{len(problems)} of {asked} hubs did not take it, as {problems[0]}")
    return asked


async def _expiring(app: Windlass) -> AsyncIterator[Feed]:
    feeds = (await app.store()).feeds
    last = 0
    while page := await feeds.expiring_websub(after=last):
        for feed in page:
            yield feed
        last = page[-1].id

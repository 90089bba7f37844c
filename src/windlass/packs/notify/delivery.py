"""What sending has in common: an id that stays over retries, and what an answer's status means."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from windlass.app import Windlass
from windlass.core.http_time import retry_hint
from windlass.core.job import Job
from windlass.core.signals import Discard, Retry
from windlass.packs.outgoing import FINAL, Answer, outgoing
from windlass.worker.context import JobContext

_OK = range(200, 300)
_SERVER_ERRORS = range(500, 600)
_ASK_AGAIN = frozenset({408, 425, 429})
_SHORTEST, _LONGEST = timedelta(seconds=10), timedelta(days=1)


def delivery_id(ctx: JobContext, job: Job) -> str:
    """Name what a job delivers: the same for every try, another for each slot of a recurring job and in each database."""
    slot = "" if ctx.slot_at is None else ctx.slot_at.isoformat()
    return hashlib.sha256(f"{job.id} {job.created_at.isoformat()} {slot}".encode()).hexdigest()[:32]


async def ask(app: Windlass, method: str, url: str, **options: Any) -> Answer:
    """Send a request as `Outgoing.send` does; what no retry helps becomes a Discard, which counts for no breaker."""
    try:
        return await outgoing(app).send(method, url, **options)
    except FINAL as error:
        raise Discard(str(error)) from error


def check_status(answer: Answer, who: str, now: datetime) -> None:
    """Raise the error of an answer that is not 2xx: one that is worth a retry, or one that no retry can help."""
    if answer.status in _OK:
        return
    told = f"{who} answered {answer.status}"
    if answer.status in _SERVER_ERRORS or answer.status in _ASK_AGAIN:
        raise Retry(told, after=_wished(answer, now))
    raise Discard(told)


def _wished(answer: Answer, now: datetime) -> timedelta | None:
    """Return how long a server asks us to wait; one that asks for no wait each time must not use up all tries in a second."""
    wait = retry_hint(answer.headers, now)
    return None if wait is None or wait < _SHORTEST else min(wait, _LONGEST)

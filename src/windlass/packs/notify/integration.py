"""Calls another system over HTTP, each behind a breaker of its own."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from windlass.app import Windlass
from windlass.core.payload import encode
from windlass.packs.notify.delivery import ask, check_status, delivery_id
from windlass.packs.notify.fields import LANE, MAX_ATTEMPTS, RETRY, TIMEOUT, Headers, Json, Payload, WebAddress
from windlass.packs.outgoing import Answer, Limits, Wanted, parse_url
from windlass.worker.context import JobContext

TASK = "integration"

_LIMITS = Limits(total_s=60.0, max_bytes=500_000)


class Integration(Payload):
    """What is sent where; what comes back is the job's result."""

    url: WebAddress
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    data: Json = None
    """Sent as JSON; absent, there is no body."""
    headers: Headers = Field(default_factory=dict)
    """Those that look secret, as Authorization does, are hidden from viewers."""


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, lane=LANE, payload=Integration, timeout=TIMEOUT, retry=RETRY, max_attempts=MAX_ATTEMPTS)
    async def integration(ctx: JobContext, call: Integration) -> dict[str, Any]:
        """Send data to another system and keep its answer; its breaker is `integration` and its host."""
        now = await (await app.store()).clock()
        name = delivery_id(ctx, await app.get(ctx.job_id))
        origin = parse_url(call.url).origin
        async with app.breaker(f"integration {origin}"[:255]):
            options = {"limits": _LIMITS, "wanted": Wanted.IF_READABLE}
            answer = await ask(app, call.method, call.url, headers=_headers(call, name), body=_body(call), **options)
            check_status(answer, origin, now)
        return {"status": answer.status, "data": _read(answer), **({"fault": answer.fault} if answer.fault else {})}


def _headers(call: Integration, name: str) -> dict[str, str]:
    # The same for every try, so that a system that stores it does nothing twice.
    ours = {"accept": "application/json", "idempotency-key": name}
    if call.data is not None:
        ours["content-type"] = "application/json"
    return ours | call.headers


def _body(call: Integration) -> bytes | None:
    return None if call.data is None else encode(call.data, field="data").encode()


def _read(answer: Answer) -> Any:
    """Decode JSON, and return any other text as it is."""
    text = answer.body.decode(errors="replace")
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text

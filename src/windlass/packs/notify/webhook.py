"""Sends signed webhooks, by the rules of Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any

from pydantic import Field

from windlass.app import Windlass
from windlass.core.payload import encode
from windlass.core.signals import Discard
from windlass.packs.notify.delivery import ask, check_status, delivery_id
from windlass.packs.notify.fields import LANE, MAX_ATTEMPTS, RETRY, TIMEOUT, Line, Payload, WebAddress
from windlass.packs.outgoing import Limits, Wanted, parse_url
from windlass.worker.context import JobContext

TASK = "webhook"

_LIMITS = Limits(total_s=30.0)
_PREFIX = "whsec_"


class Webhook(Payload):
    """What is sent, and where to."""

    url: WebAddress
    event: Line = "windlass.event"
    """Sent as `type`."""
    data: dict[str, Any] = Field(default_factory=dict)


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, lane=LANE, payload=Webhook, timeout=TIMEOUT, retry=RETRY, max_attempts=MAX_ATTEMPTS)
    async def webhook(ctx: JobContext, hook: Webhook) -> dict[str, Any]:
        """Post a signed body; 2xx is success, 5xx and "not now" are retried, everything else fails for good."""
        secret = app.settings.webhook_secret
        if secret is None:
            raise Discard("webhooks are signed; set WINDLASS_WEBHOOK_SECRET")
        now = await (await app.store()).clock()
        job = await app.get(ctx.job_id)
        name = f"msg_{delivery_id(ctx, job)}"
        body = encode({"type": hook.event, "timestamp": job.created_at.isoformat(), "data": hook.data}, field="data").encode()
        headers = {"Content-Type": "application/json", **signed(secret, name, int(now.timestamp()), body)}
        # A redirect would take the event, signed, to a place that was not subscribed.
        options = {"limits": _LIMITS, "follow": False, "wanted": Wanted.NOTHING}
        answer = await ask(app, "POST", hook.url, headers=headers, body=body, **options)
        check_status(answer, parse_url(hook.url).origin, now)
        return {"status": answer.status, "webhook_id": name}


def signed(secret: str, name: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Return the headers that prove who sent a body, and when."""
    content = b".".join((name.encode(), str(timestamp).encode(), body))
    signature = base64.b64encode(hmac.digest(_key(secret), content, hashlib.sha256)).decode()
    return {"Webhook-Id": name, "Webhook-Timestamp": str(timestamp), "Webhook-Signature": f"v1,{signature}"}


def _key(secret: str) -> bytes:
    """Read a secret: base64 behind whsec_, as the standard writes it, or any other text as it is."""
    if not secret.startswith(_PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise Discard(f"WINDLASS_WEBHOOK_SECRET begins with {_PREFIX}, and the rest is not base64") from None

"""Alerts leave as signed webhooks and as mails, sent by jobs of the queue itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.packs.notify_apps import notifying
from tests.packs.test_webhook import SECRET, answering
from tests.support.local_mail import mail_server
from tests.support.local_site import serve
from windlass import Windlass
from windlass.clock import DatabaseClock
from windlass.config import load
from windlass.core.alert_rules import RULES
from windlass.core.job import NewJob
from windlass.errors import ConfigError
from windlass.testing import run_all
from windlass.upkeep.loop import Upkeep

OTHERS_OFF = ";".join(f"{name}=off" for name in RULES if name != "depth")


async def look_twice(app: Windlass) -> None:
    """Let two processes do their upkeep, with the settings of the application."""
    store = await app.store()
    await store.enqueue([NewJob(task="unknown", lane="l") for _ in range(2)])
    options = app._upkeep_options()
    for name in ("one", "two"):
        await Upkeep(store, clock=DatabaseClock(await store.clock()), options=options, name=name).round()


@pytest.mark.parametrize("secret", [SECRET, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
async def test_an_alert_is_sent_once_as_a_webhook_that_the_public_library_verifies(tmp_path: Path, secret: str) -> None:
    async with serve(answering(204)) as site:
        alerts = {"alert_webhook": site.url("/alerts"), "alerts": f"depth=1;{OTHERS_OFF}"}
        async with notifying(tmp_path, webhook_secret=secret, **alerts) as app:
            await look_twice(app)
            await run_all(app)
    [seen] = site.seen
    headers = dict(seen.headers)
    # The library reads a secret as base64; one that is plain text is given as bytes.
    receiver = Webhook(secret if secret.startswith("whsec_") else secret.encode())
    told = receiver.verify(seen.body, headers)
    assert (told["type"], told["data"]["rule"]) == ("windlass.alert.raised", "depth")
    assert told["data"]["command"] == "windlass lanes"
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        receiver.verify(seen.body.replace(b"depth", b"clock"), headers)
    with pytest.raises(WebhookVerificationError, match="No matching signature"):
        Webhook(b"somebody else's secret").verify(seen.body, headers)


async def test_an_alert_is_sent_as_a_mail(tmp_path: Path) -> None:
    async with mail_server() as box:
        alerts = {"alert_mail": "ops@example.org", "alerts": f"depth=1;{OTHERS_OFF}"}
        async with notifying(tmp_path, smtp_url=box.url, **alerts) as app:
            await look_twice(app)
            await run_all(app)
    [mail] = box.mails
    assert mail["To"] == "ops@example.org"
    assert mail["Subject"] == "[windlass] raised: 2 jobs are pending in all lanes (more than 1)"
    assert "Command: windlass lanes" in mail.get_content()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WINDLASS_ALERT_WEBHOOK", "hooks.example.org", "must be a web address"),
        ("WINDLASS_ALERT_MAIL", "ops", "must be a mail address"),
        ("WINDLASS_ALERT_MAIL", "Ops <ops@example.org>", "must be a plain mail address"),
    ],
)
def test_an_address_that_is_none_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: {message}"):
        load(environ={name: value})

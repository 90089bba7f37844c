"""Webhooks and calls to other systems, against a real server."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.packs.notify_apps import notifying
from tests.support.local_site import Answering, Seen, Write, reply, serve
from windlass import Windlass
from windlass.core.breaker import BreakerState
from windlass.core.job import JobState, WaitReason
from windlass.errors import InvalidPayload
from windlass.packs.notify.webhook import signed
from windlass.testing import Ran, run_all

SECRET = "a secret of the shop and its partner"


def answering(status: int, body: bytes = b"", **headers: str) -> Answering:
    async def answer(_seen: Seen, write: Write) -> None:
        await write(reply(status, body, **headers))

    return answer


async def ran(app: Windlass, task: str, payload: dict[str, Any]) -> Ran:
    await app.enqueue(task, payload)
    [run] = await run_all(app)
    return run


async def test_a_webhook_is_signed_so_that_its_receiver_can_tell(tmp_path: Path) -> None:
    async with serve(answering(204)) as site, notifying(tmp_path, webhook_secret=SECRET) as app:
        run = await ran(app, "webhook", {"url": site.url("/hook"), "event": "order.paid", "data": {"order": 7, "name": "Grüße"}})
        [seen] = site.seen
        assert (seen.method, seen.target, seen.headers["content-type"]) == ("POST", "/hook", "application/json")
        told = json.loads(seen.body)
        assert (told["type"], told["data"]) == ("order.paid", {"order": 7, "name": "Grüße"})
        name, moment = seen.headers["webhook-id"], seen.headers["webhook-timestamp"]
        mine = hmac.new(SECRET.encode(), f"{name}.{moment}.".encode() + seen.body, hashlib.sha256).digest()
        assert seen.headers["webhook-signature"] == f"v1,{base64.b64encode(mine).decode()}"
        assert abs((await (await app.store()).clock()).timestamp() - int(moment)) < 60
        assert run.result == {"status": 204, "webhook_id": name}


def test_the_example_of_the_standard_is_signed_as_there() -> None:
    """The test vector of the specification of Standard Webhooks."""
    headers = signed(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
    )
    assert headers["Webhook-Signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    ("status", "headers", "state", "wait"),
    [
        (500, {}, JobState.SCHEDULED, None),
        (503, {"retry_after": "120"}, JobState.SCHEDULED, 120),
        (429, {"retry_after": "3600"}, JobState.SCHEDULED, 3600),
        (429, {"retry_after": "99999999999999999999"}, JobState.SCHEDULED, 86_400),
        (429, {"retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"}, JobState.SCHEDULED, None),
        (503, {"retry_after": "0"}, JobState.SCHEDULED, None),
        (425, {"retry_after": "soon"}, JobState.SCHEDULED, None),
        (408, {}, JobState.SCHEDULED, None),
        (400, {}, JobState.FAILED, None),
        (404, {}, JobState.FAILED, None),
        (410, {}, JobState.FAILED, None),
        (301, {"location": "/elsewhere"}, JobState.FAILED, None),
    ],
)
async def test_an_answer_decides_what_becomes_of_the_job(
    tmp_path: Path, status: int, *, headers: dict[str, Any], state: JobState, wait: float | None
) -> None:
    async with serve(answering(status, **headers)) as site, notifying(tmp_path, webhook_secret=SECRET) as app:
        run = await ran(app, "webhook", {"url": site.url()})
        job = await app.get(run.job_id)
        assert run.message == f"{site.url('').rstrip('/')} answered {status}"
        assert (job.state, len(site.seen)) == (state, 1)
        if wait is not None:
            assert job.wait_reason is WaitReason.RETRY
            assert job.run_at is not None
            assert (
                timedelta(seconds=-5) < job.run_at - (await (await app.store()).clock()) - timedelta(seconds=wait) <= timedelta(0)
            )


UNREADABLE: dict[str, tuple[bytes, dict[str, str]]] = {
    "too large": (b"x" * 600_000, {}),
    "announced too large": (b"x", {"content_length": "99999999"}),
    "packed as nobody asked": (b"x", {"content_encoding": "br"}),
    "not what it says": (b"x", {"content_encoding": "gzip"}),
    "cut off": (b"x", {"content_length": "7"}),
}


@pytest.mark.parametrize("kind", UNREADABLE)
async def test_a_status_counts_whatever_the_body_is(tmp_path: Path, kind: str) -> None:
    body, headers = UNREADABLE[kind]
    async with serve(answering(200, body, **headers)) as site, notifying(tmp_path, webhook_secret=SECRET) as app:
        hook = await ran(app, "webhook", {"url": site.url()})
        call = await ran(app, "integration", {"url": site.url()})
        assert (hook.status, call.status) == ("completed", "completed"), (hook.message, call.message)
        assert (call.result["status"], call.result["data"], len(site.seen)) == (200, None, 2)
        assert call.result["fault"]
    async with serve(answering(400, body, **headers)) as site, notifying(tmp_path) as app:
        refused = await ran(app, "integration", {"url": site.url()})
        assert (refused.message or "").endswith("answered 400")


async def test_every_try_of_a_webhook_has_the_same_id_and_body(tmp_path: Path) -> None:
    statuses = iter([500, 200, 200])

    async def answer(_seen: Seen, write: Write) -> None:
        await write(reply(next(statuses)))

    async with serve(answer) as site, notifying(tmp_path, webhook_secret=SECRET) as app:
        await ran(app, "webhook", {"url": site.url()})
        await run_all(app, retries=True)
        await ran(app, "webhook", {"url": site.url()})
        first, second, other = site.seen
        assert first.headers["webhook-id"] == second.headers["webhook-id"] != other.headers["webhook-id"]
        assert first.body == second.body


async def test_without_a_secret_nothing_is_sent(tmp_path: Path) -> None:
    async with serve(answering(200)) as site, notifying(tmp_path) as app:
        run = await ran(app, "webhook", {"url": site.url()})
        assert "set WINDLASS_WEBHOOK_SECRET" in (run.message or "")
        assert ((await app.get(run.job_id)).state, site.seen) == (JobState.FAILED, [])


async def test_a_webhook_into_the_own_network_fails_for_good(tmp_path: Path) -> None:
    async with serve(answering(200)) as site, notifying(tmp_path, webhook_secret=SECRET) as app:
        app.settings = replace(app.settings, allow_private_addresses=False)
        run = await ran(app, "webhook", {"url": site.url()})
        assert "WINDLASS_ALLOW_PRIVATE_ADDRESSES" in (run.message or "")
        assert ((await app.get(run.job_id)).state, site.seen) == (JobState.FAILED, [])


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("webhook", {}),
        ("webhook", {"url": "ftp://example.org/"}),
        ("webhook", {"url": "http://2130706433/"}),
        ("webhook", {"url": "http://me:hunter2@example.org/"}),
        ("webhook", {"url": "https://example.org/", "data": []}),
        ("webhook", {"url": "https://example.org/", "event": "a\nb"}),
        ("webhook", {"url": "https://example.org/", "secret": "x"}),
        ("integration", {"url": "example.org"}),
        ("integration", {"url": "https://example.org/", "method": "TRACE"}),
        ("integration", {"url": "https://example.org/", "headers": {"X A": "b"}}),
        ("integration", {"url": "https://example.org/", "headers": {"X-A": "b\r\nc: d"}}),
        ("integration", {"url": "https://example.org/", "headers": {"Host": "inner"}}),
        ("cleanup-jobs", {"days": 0}),
        ("produce-reminders", {"limit": 1}),
    ],
)
async def test_what_cannot_be_sent_is_refused_at_enqueue(tmp_path: Path, task: str, payload: dict[str, Any]) -> None:
    async with notifying(tmp_path) as app:
        with pytest.raises(InvalidPayload):
            await app.enqueue(task, payload)


async def test_data_goes_to_another_system_and_its_answer_is_the_result(tmp_path: Path) -> None:
    async with serve(answering(201, b'{"id":"x9"}')) as site, notifying(tmp_path) as app:
        call = {"url": site.url("/sites"), "method": "PUT", "data": {"name": "Halle"}, "headers": {"Authorization": "Bearer t"}}
        run = await ran(app, "integration", call)
        [seen] = site.seen
        assert (seen.method, seen.target, json.loads(seen.body)) == ("PUT", "/sites", {"name": "Halle"})
        assert (seen.headers["authorization"], seen.headers["content-type"]) == ("Bearer t", "application/json")
        assert len(seen.headers["idempotency-key"]) == 32
        assert run.result == {"status": 201, "data": {"id": "x9"}}


@pytest.mark.parametrize(
    ("body", "data"), [(b"", None), (b"plain", "plain"), (b"[" * 100_000, "[" * 100_000)], ids=["empty", "text", "deep"]
)
async def test_an_answer_that_is_no_json_is_kept_as_a_text(tmp_path: Path, body: bytes, data: str | None) -> None:
    async with serve(answering(200, body)) as site, notifying(tmp_path) as app:
        run = await ran(app, "integration", {"url": site.url(), "method": "GET"})
        assert run.result == {"status": 200, "data": data}
        assert site.seen[0].body == b""


async def test_a_system_in_trouble_is_left_alone_and_others_are_not(tmp_path: Path) -> None:
    async with serve(answering(500)) as bad, serve(answering(200)) as good, notifying(tmp_path, breaker_threshold=2) as app:
        for _ in range(2):
            await ran(app, "integration", {"url": bad.url()})
        held = await ran(app, "integration", {"url": bad.url("/other")})
        assert held.status == "cancelled", held.message
        assert (await app.get(held.job_id)).wait_reason is WaitReason.SNOOZE
        assert (await ran(app, "integration", {"url": good.url()})).status == "completed"
        [breaker] = await app.breakers.list()
        assert (breaker.name, breaker.state) == (f"integration http://127.0.0.1:{bad.port}", BreakerState.OPEN)
        assert len(bad.seen) == 2

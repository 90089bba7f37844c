"""Mails: from the enqueue through a worker to a real mail server."""

from __future__ import annotations

from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import AuthResult

from tests.crash.processes import until
from tests.packs.notify_apps import notifying
from tests.support.local_mail import mail_server
from tests.web.serving import served
from windlass import Windlass
from windlass.compat import aio as seed
from windlass.core.breaker import BreakerState
from windlass.core.job import JobState
from windlass.errors import InvalidPayload
from windlass.testing import Ran, run_all

WRITTEN = {"to": "ada@example.org", "subject": "Grüße", "text": "Hallo Ada,\n.\nbis bald"}


async def sent(app: Windlass, payload: dict[str, Any], **options: Any) -> Ran:
    await app.enqueue("email", payload, **options)
    [run] = await run_all(app)
    return run


async def test_a_mail_arrives_as_it_was_written(tmp_path: Path) -> None:
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url) as app:
        run = await sent(app, WRITTEN | {"html": "<p>Hallo</p>", "reply_to": "help@example.org"})
        [mail], [envelope] = box.mails, box.envelopes
        assert (envelope.mail_from, envelope.rcpt_tos) == ("shop@example.org", ["ada@example.org"])
        assert (mail["From"], mail["To"], mail["Subject"]) == ("Shop <shop@example.org>", "ada@example.org", "Grüße")
        assert mail["Reply-To"] == "help@example.org"
        assert run.result == {"to": "ada@example.org", "message_id": mail["Message-ID"]}
        assert mail["Message-ID"].endswith("@example.org>")
        assert mail["Date"].datetime.tzinfo is not None
        assert text_of(mail, "plain") == "Hallo Ada,\n.\nbis bald\n"
        assert text_of(mail, "html") == "<p>Hallo</p>\n"


def text_of(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")


async def test_a_mail_of_the_seed_is_filled_from_its_template(tmp_path: Path) -> None:
    (tmp_path / "welcome.txt").write_text("Subject: Hi $name\n\nYou owe $$5, $name.\n", encoding="utf-8")
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url, mail_templates=str(tmp_path)) as app:
        payload = {"to": "user@example.com", "template": "welcome", "data": {"name": "Ada\r\nBcc: eve@example.org"}}
        job = await app.get(await seed.enqueue_job(app, "email", payload))
        assert (job.lane, job.task) == ("fast", "email")
        await run_all(app)
        [mail], [envelope] = box.mails, box.envelopes
        assert mail["Subject"] == "Hi Ada Bcc: eve@example.org"
        assert mail["Bcc"] is None
        assert envelope.rcpt_tos == ["user@example.com"]
        assert text_of(mail, "plain").startswith("You owe $5, Ada")


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"to": "ada@example.org", "template": "none"}, "WINDLASS_MAIL_TEMPLATES"),
        ({"to": "ada@example.org", "template": "welcome"}, "needs 'name' in data"),
        ({"to": "ada@example.org", "template": "broken", "data": {}}, "must begin with a line"),
    ],
)
async def test_a_template_that_a_producer_without_the_pack_could_not_check_fails_for_good(
    tmp_path: Path, payload: dict[str, Any], why: str
) -> None:
    (tmp_path / "broken.txt").write_text("Hello\n", encoding="utf-8")
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url, mail_templates=str(tmp_path)) as app:
        async with Windlass(app.settings.database_url, accept_unknown=True) as producer:
            await producer.enqueue("email", payload)
        [run] = await run_all(app)
        assert why in (run.message or "")
        assert (await app.get(run.job_id)).state is JobState.FAILED
        assert box.mails == []


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"to": "ada@example.org"},
        {"to": "ada@example.org", "subject": "s"},
        {"to": "ada@example.org", "subject": "s\r\nBcc: eve@example.org", "text": "t"},
        {"to": "ada@example.org\r\nBcc: eve@example.org", "subject": "s", "text": "t"},
        {"to": "ada@example.org, eve@example.org", "subject": "s", "text": "t"},
        {"to": "Ada <ada@example.org>", "subject": "s", "text": "t"},
        {"to": "ada", "subject": "s", "text": "t"},
        {"to": "ada@example.org>", "subject": "s", "text": "t"},
        {"to": ["ada@example.org"], "subject": "s", "text": "t"},
        {"to": "ada@example.org", "template": "../../etc/passwd"},
        {"to": "ada@example.org", "template": "welcome", "subject": "s"},
        {"to": "ada@example.org", "template": "welcome", "data": {"name": ["x"]}},
        {"to": "ada@example.org", "subject": "s", "text": "t", "bcc": "eve@example.org"},
    ],
)
async def test_a_mail_that_cannot_be_sent_is_refused_at_enqueue(tmp_path: Path, payload: dict[str, Any]) -> None:
    async with notifying(tmp_path) as app:
        with pytest.raises(InvalidPayload):
            await app.enqueue("email", payload)
        assert not (await app.list()).jobs


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        ({"to": "ada@example.org", "template": "welcome"}, "template 'welcome' needs 'name' in data"),
        ({"to": "ada@example.org", "template": "reminder", "data": {"name": "Ada"}}, "template 'reminder' needs 'what' in data"),
        ({"to": "ada@example.org", "template": "own", "data": {}}, "template 'own' needs 'sum' in data"),
    ],
)
async def test_a_template_without_its_data_is_refused_at_enqueue(tmp_path: Path, payload: dict[str, Any], why: str) -> None:
    (tmp_path / "own.txt").write_text("Subject: Bill\n\n$sum\n", encoding="utf-8")
    app = notifying(tmp_path, mail_templates=str(tmp_path))
    async with served(app) as web:
        refused = await web.ask("POST", "/api/v1/jobs", json={"task": "email", "payload": payload})
        assert (refused.status_code, why in refused.text) == (400, True), refused.text
        with pytest.raises(InvalidPayload, match=why):
            await app.enqueue("email", payload)
        assert not (await app.list()).jobs


async def test_a_template_that_only_the_worker_has_is_taken(tmp_path: Path) -> None:
    async with notifying(tmp_path) as app:
        await app.enqueue("email", {"to": "ada@example.org", "template": "elsewhere"})


async def test_without_a_mail_server_or_sender_the_job_says_what_to_set(tmp_path: Path) -> None:
    async with notifying(tmp_path) as app:
        run = await sent(app, WRITTEN)
        assert "set WINDLASS_SMTP_URL" in (run.message or "")
        assert (await app.get(run.job_id)).state is JobState.FAILED
        assert await app.breakers.list() == []


@pytest.mark.parametrize(
    ("said", "state"),
    [("550 5.1.1 no such user", JobState.FAILED), ("450 4.2.0 come back later", JobState.SCHEDULED)],
)
async def test_a_refused_recipient_says_nothing_of_the_service(tmp_path: Path, said: str, state: JobState) -> None:
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url, breaker_threshold=1) as app:
        box.refused["ada@example.org"] = said
        run = await sent(app, WRITTEN)
        assert said in (run.message or "")
        assert (await app.get(run.job_id)).state is state
        assert await app.breakers.list() == []
        assert (await sent(app, WRITTEN | {"to": "bob@example.org"})).status == "completed"


@pytest.mark.parametrize(
    ("said", "state", "opens"),
    [("554 5.7.1 spam", JobState.FAILED, False), ("451 4.3.0 no disk", JobState.SCHEDULED, True)],
)
async def test_a_refused_mail_fails_and_a_server_in_trouble_is_left_alone(
    tmp_path: Path, said: str, state: JobState, *, opens: bool
) -> None:
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url, breaker_threshold=1) as app:
        box.on_data = said
        run = await sent(app, WRITTEN)
        assert said in (run.message or "")
        assert (await app.get(run.job_id)).state is state
        assert [one.name for one in await app.breakers.list()] == (["email-service"] if opens else [])


async def test_a_retried_mail_has_the_same_message_id(tmp_path: Path) -> None:
    async with mail_server() as box, notifying(tmp_path, smtp_url=box.url) as app:
        box.on_data = "451 not now"
        job = await app.enqueue("email", WRITTEN)
        await run_all(app)
        box.on_data = "250 OK"
        [again] = await run_all(app, retries=True)
        other = await sent(app, WRITTEN)
        first, second = (mail["Message-ID"] for mail in box.mails)
        assert (again.job_id, again.result) == (job.id, {"to": "ada@example.org", "message_id": first})
        assert other.result == {"to": "ada@example.org", "message_id": second}
        assert first != second


async def test_a_mail_server_that_is_away_opens_the_breaker_and_costs_no_mail(tmp_path: Path) -> None:
    async with mail_server() as box:
        port = box.port
    settings = {"breaker_threshold": 2, "breaker_open": "50ms", "poll_interval": "20ms"}
    app = notifying(tmp_path, smtp_url=f"smtp://127.0.0.1:{port}", **settings)
    async with app, app.working():
        jobs = [await app.enqueue("email", WRITTEN) for _ in range(6)]
        store = await app.store()

        async def is_open() -> bool:
            return any(breaker.state is not BreakerState.CLOSED for breaker in await app.breakers.list())

        await until(is_open, "the breaker to open")
        async with mail_server(port) as back:
            await store.run_now([job.id for job in jobs])
            # A job that runs when it is told to run now runs once more, so there may be more mails than jobs.
            await until(lambda: len(back.mails) >= len(jobs), "every mail to arrive")
        [breaker] = await app.breakers.list()
        assert (breaker.name, breaker.state) == ("email-service", BreakerState.CLOSED)


async def test_a_password_is_used_and_a_wrong_one_opens_the_breaker(tmp_path: Path) -> None:
    def check(_server: Any, _session: Any, _envelope: Any, _mechanism: str, data: Any) -> Any:
        return AuthResult(success=(data.login, data.password) == (b"me", b"p@ss"), handled=False)

    async with mail_server(authenticator=check, auth_require_tls=False) as box:
        async with notifying(tmp_path, smtp_url=f"smtp://me:p%40ss@127.0.0.1:{box.port}") as app:
            assert (await sent(app, WRITTEN)).status == "completed"
        async with notifying(tmp_path, smtp_url=f"smtp://me:wrong@127.0.0.1:{box.port}", breaker_threshold=1) as app:
            run = await sent(app, WRITTEN)
            assert "535" in (run.message or "")
            assert "wrong" not in (run.message or "")
            assert (await app.get(run.job_id)).state is JobState.SCHEDULED
            assert len(await app.breakers.list()) == 1


async def test_a_server_without_starttls_gets_no_mail_when_it_is_asked_for(tmp_path: Path) -> None:
    async with mail_server() as box, notifying(tmp_path, smtp_url=f"smtp+starttls://127.0.0.1:{box.port}") as app:
        run = await sent(app, WRITTEN)
        assert "STARTTLS" in (run.message or "")
        assert box.mails == []

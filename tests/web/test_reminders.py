"""Reminders and the tasks of `notify` over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from windlass import Windlass, packs
from windlass.core.access import Role

MAIL = {"to": "ada@example.org", "template": "reminder", "data": {"what": "rent", "api_token": "t0p"}}
BODY = {"due_at": "2030-01-01T08:00:00+01:00", "mail": MAIL}


@pytest.fixture
async def web(url: str) -> AsyncIterator[Served]:
    app = Windlass(url, **SETTINGS)
    packs.install(app, ["notify"])
    async with served(app) as made:
        yield made


async def test_a_reminder_is_kept_listed_and_forgotten(web: Served) -> None:
    made = await web.ask("POST", "/api/v1/reminders", Role.PRODUCER, json=BODY)
    assert made.status_code == 201
    kept = made.json()
    assert (kept["due_at"], kept["mail"], kept["job_id"]) == ("2030-01-01T07:00:00Z", MAIL, None)
    second = (await web.ask("POST", "/api/v1/reminders", Role.PRODUCER, json=BODY)).json()
    path = f"/api/v1/reminders/{kept['id']}"
    assert (await web.ask("GET", path, Role.PRODUCER)).json() == kept
    seen = (await web.ask("GET", path, Role.VIEWER)).json()
    assert seen["mail"]["data"] == {"what": "rent", "api_token": "[redacted]"}
    listed = (await web.ask("GET", "/api/v1/reminders?limit=1", Role.PRODUCER)).json()
    assert (listed["reminders"], listed["total"], listed["next"]) == ([kept], 2, kept["id"])
    rest = (await web.ask("GET", f"/api/v1/reminders?after={kept['id']}", Role.PRODUCER)).json()
    assert (rest["reminders"], rest["next"]) == ([second], None)
    assert (await web.ask("DELETE", path, Role.OPERATOR)).json() == kept
    assert [(await web.ask(method, path)).status_code for method in ("GET", "DELETE")] == [404, 404]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"mail": {"to": "nobody", "template": "reminder"}}, "to"),
        ({"mail": {"to": "ada@example.org", "subject": "a\r\nBcc: b@c", "text": "t"}}, "subject"),
        ({"mail": []}, "mail"),
        ({"due_at": "2030-01-01T08:00:00"}, "due_at"),
        ({"due_at": 5}, "due_at"),
        ({"more": 1}, "more"),
    ],
)
async def test_what_could_not_be_sent_is_refused_by_its_name(web: Served, change: dict[str, Any], named: str) -> None:
    answer = await web.ask("POST", "/api/v1/reminders", Role.PRODUCER, json=BODY | change)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"{named}: ")
    assert (await web.ask("GET", "/api/v1/reminders")).json()["total"] == 0


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_without_the_pack_a_reminder_is_refused(url: str) -> None:
    async with served(Windlass(url, **SETTINGS)) as bare:
        answer = await bare.ask("POST", "/api/v1/reminders", json=BODY)
        assert (answer.status_code, "is not registered" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("task", "payload", "named"),
    [
        ("email", {"to": "ada@example.org"}, "needs a template"),
        ("email", {"to": "nobody", "subject": "s", "text": "t"}, "to: "),
        ("webhook", {"url": "file:///etc/passwd"}, "url: "),
        ("integration", {"url": "http://0x7f.1/"}, "url: "),
        ("cleanup-jobs", {"days": 0}, "days: "),
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_bad_payload_is_refused_at_enqueue_over_http(web: Served, task: str, payload: dict[str, Any], named: str) -> None:
    answer = await web.ask("POST", "/api/v1/jobs", Role.PRODUCER, json={"task": task, "payload": payload})
    assert answer.status_code == 400
    assert named in answer.json()["error"]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_mail_is_enqueued_over_http_in_the_fast_lane(web: Served) -> None:
    payload = {"to": "user@example.com", "template": "welcome", "data": {"name": "Ada"}}
    answer = await web.ask("POST", "/api/v1/jobs", Role.PRODUCER, json={"task": "email", "payload": payload})
    assert (answer.status_code, answer.json()["lane"], answer.json()["payload"]) == (201, "fast", payload)

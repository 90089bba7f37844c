"""What goes wrong is told in one way: a status, a text that names the field, a request id, and nothing of the inside."""

from __future__ import annotations

import json
import logging
from typing import Any

import httpx2
import pytest

from tests.web.serving import BASE, Served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.cadence import Cron
from windlass.core.cadence_text import describe
from windlass.core.known_task import DeclaredTask
from windlass.core.payload import encode_object
from windlass.errors import (
    DuplicateJob,
    InvalidInput,
    InvalidTransition,
    JobNotFound,
    LeaseHeld,
    LeaseLost,
    SchemaError,
    StoreRefused,
    StoreUnavailable,
    TokenNeeded,
    UnknownTask,
)
from windlass.web.errors import Refusal, refusal_of
from windlass.web.route import PUBLIC, Route
from windlass.web.server import Server

ERRORS = [
    (JobNotFound(7), 404, "job 7"),
    (InvalidTransition(7, "pause", "running", "paused"), 400, "running → paused"),
    (InvalidInput("lane", "", "must be a text"), 400, "lane: must be a text (got '')"),
    (UnknownTask("x"), 400, "task: is not registered"),
    (LeaseLost(7), 409, "job 7"),
    (TokenNeeded(7, "w"), 409, "attempt_id"),
    (LeaseHeld(7, "w"), 409, "cancel it"),
    (DuplicateJob("t", "k", 3), 409, "job 3"),
    (StoreUnavailable("password=hunter2"), 503, "try again"),
    (SchemaError("inside"), 503, "try again"),
    (StoreRefused("inside"), 500, "internal error"),
    (RuntimeError("inside"), 500, "internal error"),
    (Refusal(418, "short and stout"), 418, "short"),
]


@pytest.mark.parametrize(("error", "status", "words"), ERRORS)
def test_an_error_has_one_status(error: Exception, status: int, words: str) -> None:
    refusal = refusal_of(error)
    assert (refusal.status, words in refusal.text) == (status, True), refusal.text
    assert "inside" not in refusal.text
    assert "hunter2" not in refusal.text
    assert ("retry-after" in refusal.headers) == (status == 503)


def test_a_face_may_have_another_status() -> None:
    error = InvalidTransition(7, "retry", "running", "pending")
    assert refusal_of(error, {InvalidTransition: 409}).status == 409
    assert refusal_of(JobNotFound(7), {InvalidTransition: 409}).status == 404


async def test_what_breaks_inside_is_logged_with_the_request_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    async def broken() -> None:
        raise ZeroDivisionError("the secret recipe")

    server = Server(Windlass("sqlite://"), [Route("GET", "/broken", PUBLIC, broken)])
    transport = httpx2.ASGITransport(app=server)
    async with httpx2.AsyncClient(transport=transport, base_url=BASE) as client:
        answer = await client.get("/broken", headers={"x-request-id": "find-me"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (500, "find-me")
    assert "recipe" not in answer.text
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ZeroDivisionError)


async def put(web: Served, content: bytes, kind: str | None = "application/json") -> httpx2.Response:
    headers = {} if kind is None else {"content-type": kind}
    return await web.ask("PUT", "/api/v1/settings/LEASE_SEC_DEFAULT", content=content, headers=headers)


@pytest.mark.parametrize(
    "content",
    [
        b'{"value": 60 // seconds\n}',
        b'{"value": 60,}',
        b"{'value': 60}",
        b'{"value": 60, "value": 90}',
        b'{"value": NaN}',
        b'{"value": Infinity}',
        b'{"value": 60} trailing',
        b'{"value": "\xff"}',
        b'{"value": "\\ud800"}',
        b'{"value": "\\u0000"}',
        b'{"value": 60',
        b"[" * 100_000,
        b"value=60",
        b"",
        b"[]",
        b"null",
        b'"60"',
        b"{}",
        b'{"value": 60, "more": 1}',
        b'{"value": true}',
        b'{"value": [60]}',
        b'{"value": null}',
        b'{"value": 5}',
        b'{"value": 1e3}',
        b'{"value": 100000000000000000000000}',
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_body_that_is_not_what_was_asked_for_is_refused(web: Served, content: bytes) -> None:
    answer = await put(web, content)
    assert (answer.status_code, list(answer.json())) == (400, ["error"]), answer.text
    [setting] = [
        one for one in (await web.ask("GET", "/api/v1/settings")).json()["settings"] if one["name"] == "LEASE_SEC_DEFAULT"
    ]
    assert setting["origin"] == "default"


@pytest.mark.parametrize(
    "kind", [None, "text/plain", "application/x-www-form-urlencoded", "application/xml", "multipart/form-data"]
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_another_content_type_is_refused(web: Served, kind: str | None) -> None:
    assert (await put(web, b'{"value": 60}', kind)).status_code == 415
    assert (await put(web, b'{"value": 60}', "application/json; charset=utf-8")).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_field_and_the_value_are_named(web: Served) -> None:
    for path, words in (
        ("/api/v1/tasks?limit=0", ("limit: ", "'0'")),
        ("/api/v1/tasks?limit=many", ("limit: ", "'many'")),
        ("/api/v1/audit?since=yesterday", ("since: ", "'yesterday'")),
        ("/api/v1/audit?before=0", ("before: ",)),
    ):
        answer = await web.ask("GET", path)
        assert (answer.status_code, all(word in answer.json()["error"] for word in words)) == (400, True), answer.text
    answer = await put(web, b'{"value": 5}')
    assert answer.json()["error"].startswith("LEASE_SEC_DEFAULT: ")
    missing = await web.ask("POST", "/api/v1/tokens", json={"name": "x"})
    assert missing.json()["error"] == "role: is required"


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("jobs", {"task": "t", "prioriti": 3}, "prioriti: is not a field; did you mean priority? (got 3)"),
        ("jobs", {"url": "https://a.example", "intervall_type": "hour"}, "did you mean interval_type?"),
        (
            "dead-letters/canaries",
            {"size": 3, "fingerprint": "x"},
            "fingerprint: is not a field; did you mean filter.fingerprint? (got 'x')",
        ),
        (
            "alerts/depth/silence",
            {"for": "2h", "reason": "x", "subject": "mail"},
            "subject: depth is one alert of the whole queue and has no subjects; leave it out (got 'mail')",
        ),
        ("tokens", {"name": "x", "rolle": "viewer"}, "rolle: is not a field; did you mean role?"),
        ("tokens", {"name": "x", "role": "viewer", "xyzzy": 1}, "xyzzy: is not a field (got 1)"),
        ("jobs/bulk", {"jobs": [{"task": "t", "prioriti": 3}]}, "jobs.0.prioriti: is not a field; did you mean priority?"),
    ],
)
async def test_a_field_that_was_mistyped_comes_with_the_nearest(web: Served, path: str, body: dict[str, Any], text: str) -> None:
    answer = await web.ask("POST", f"/api/v1/{path}", json=body)
    assert (answer.status_code, text in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_pull_workers_mistyped_field_comes_with_the_nearest(web: Served) -> None:
    answer = await web.ask("POST", "/api/report_results", Role.WORKER, json={"job_id": 1, "itmes": []})
    assert "itmes: is not a field; did you mean items?" in answer.text


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_payload_is_edited_only_to_what_the_task_takes(web: Served) -> None:
    schema = {"properties": {"to": {"type": "string"}}, "required": ["to"], "additionalProperties": False}
    declared = DeclaredTask(name="mail", options=encode_object({"schema": schema}))
    await (await web.app.store()).tasks.declare([declared])
    made = (await web.ask("POST", "/api/v1/jobs", json={"task": "mail", "payload": {"to": "ann"}})).json()
    refused = await web.ask("PUT", f"/api/v1/jobs/{made['id']}", json={"payload": {"too": "bob"}})
    assert (refused.status_code, "too: is not an argument" in refused.text) == (400, True)
    assert (await web.ask("PUT", f"/api/v1/jobs/{made['id']}", json={"payload": {"to": "bob"}})).status_code == 200


@pytest.mark.parametrize(
    ("given", "kept"),
    [("abc-1.2_3:x/y+=", True), ("x" * 128, True), ("x" * 129, False), ("a b", False), ("", False), ("<b>", False)],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_sane_request_id_is_kept(web: Served, given: str, kept: bool) -> None:  # noqa: FBT001 - a case
    answer = await web.client.get("/healthz", headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) == kept
    assert answer.headers["x-request-id"]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_log_lines_carry_the_request(web: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "windlass.web")
    await web.client.get("/api/v1/lanes?code=secret", headers={"x-request-id": "r-9"})
    [record] = [record for record in caplog.records if record.name == "windlass.web"]
    fields: dict[str, Any] = vars(record)
    assert (fields["status"], fields["principal"], record.getMessage()) == (401, "anonymous", "GET /api/v1/lanes")
    assert "secret" not in json.dumps(fields, default=str)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_path_brings_no_line_of_its_own_into_a_log(web: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "windlass.web")
    await web.client.get("/x%0a2026-01-01%20ERROR%20forged%1b%5b31m")
    [record] = [record for record in caplog.records if record.name == "windlass.web"]
    assert record.getMessage().isprintable()


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_database_that_does_not_answer_is_503(web: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await web.ask("GET", "/api/v1/lanes", Role.ADMIN)
    store = await web.app.store()

    async def fail(*_args: object) -> None:
        raise StoreUnavailable("no route to host 10.0.0.1")

    monkeypatch.setattr(type(store.database), "run", fail)
    answer = await web.ask("GET", "/api/v1/lanes", Role.ADMIN)
    assert (answer.status_code, answer.headers["retry-after"], "10.0.0.1" in answer.text) == (503, "1", False)
    ready = await web.client.get("/readyz")
    assert (ready.status_code, "10.0.0.1" in ready.text) == (503, False)
    assert (await web.client.get("/healthz")).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
@pytest.mark.parametrize(
    ("query", "told"), [("tusk=mail", "is not a parameter of this route"), ("task=mail&task=", "task: is given more than once")]
)
async def test_a_filter_that_cannot_be_meant_is_refused_and_not_dropped(web: Served, query: str, told: str) -> None:
    answer = await web.ask("GET", f"/api/v1/jobs?{query}")
    assert (answer.status_code, told in answer.json()["error"]) == (400, True), answer.text


JOBS, SOURCES = "/api/v1/jobs", "/api/v1/sources"
LONG_HOST = ".".join(["a" * 60] * 5)


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        ("/api/v1/breakers/mail/force-open", {"for": "0s"}, "for: must be a duration of 1ms to 100 years (got 0s)"),
        (
            "/api/v1/breakers/mail/force-open",
            {"for": []},
            "for: input should be a valid string or input should be a valid number",
        ),
        (JOBS, {"task": "t", "delay": []}, "delay: input should be a valid string or input should be a valid number (got [])"),
        (JOBS, {"task": "t", "priority": None, "lane": True}, "lane: input should be a valid string (got true)"),
        (
            JOBS,
            {"task": "t", "lane": "pull", "run_at": "9999-01-01T00:00:00Z"},
            "run_at: must lie between the years 1970 and 9000 (got 9999-01-01T00:00:00Z)",
        ),
        (JOBS, {"task": "t", "run_at": 5}, "run_at: must be a time such as 2025-12-29T10:30:00Z (got 5)"),
        (JOBS, {"task": "t", "lane": "pull", "timeout": "0s"}, "timeout: must be a duration of "),
        (JOBS, {"url": f"https://{LONG_HOST}/"}, "url: must be a text of 1 to 255 characters"),
        (SOURCES, {"url": f"https://{LONG_HOST}/"}, "url: must be a text of 1 to 255 characters"),
        (JOBS, {"url": "https://a..b"}, "url: must be an http or https address"),
        (SOURCES, {"url": "https://a..b/x"}, "url: must be an http or https address"),
        (SOURCES, {"url": "https://.b/x"}, "url: must be an http or https address"),
    ],
)
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_complaint_names_the_field_and_the_value_as_they_were_sent(
    web: Served, path: str, body: dict[str, Any], text: str
) -> None:
    answer = await web.ask("POST", path, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(text), answer.json()["error"]
    assert "datetime" not in answer.text


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_half_a_surrogate_pair_in_an_address_is_refused(web: Served) -> None:
    for path, body in ((JOBS, r'{"url": "https://a.example/\ud800"}'), (SOURCES, r'{"url": "https://a.example/\ud800"}')):
        answer = await web.ask("POST", path, content=body.encode(), headers={"content-type": "application/json"})
        assert answer.status_code == 400, answer.text


@pytest.mark.parametrize(
    ("cron", "text"),
    [
        ("0 8 * * sat-sun", "on Saturday to Sunday"),
        ("0 8 * * MON-SUN", "on Monday to Sunday"),
        ("0 8 * * friday", "on Friday"),
        ("0 8 * * Wednesday-Sunday", "on Wednesday to Sunday"),
        ("0 8 1 december *", "December"),
        ("0 8 * * fri-mon", None),
        ("0 8 * * freitag", None),
    ],
)
@pytest.mark.usefixtures("crawled")
@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_days_in_cron_are_read_as_people_write_them(web: Served, cron: str, text: str | None) -> None:
    answer = await web.ask("POST", JOBS, json={"url": "https://a.example/", "schedule_time": cron})
    if text is None:
        assert answer.status_code == 400
        assert "days are sun to sat or 0 to 7, and a range runs forward" in answer.json()["error"]
        return
    assert answer.status_code == 201, answer.text
    assert cron in answer.text
    assert text in describe(Cron(cron))

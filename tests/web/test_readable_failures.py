"""What the server shows of a failed job, and what it hides."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

from tests.web.serving import Served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.job import JobState, NewJob
from windlass.core.payload import encode_object
from windlass.core.signals import Snooze
from windlass.packs import crawl
from windlass.telemetry import TextFormatter

SECRET = 12345678


class Account(BaseModel):
    """A payload with a secret."""

    name: str
    password: str


def not_weak(password: str) -> str:
    raise ValueError(f"{password!r} is weak")


def login(password: str) -> None: ...


def login_twice(name: str, passwords: list[str]) -> None: ...


def login_account(account: Account) -> None: ...


def login_checked(password: Annotated[str, AfterValidator(not_weak)]) -> None: ...


async def failed(app: Windlass, task: str, payload: dict[str, Any]) -> int:
    """Enqueue without the checks that a client with the code makes, and let it fail."""
    [made] = await app.enqueue_jobs([NewJob(task=task, payload=encode_object(payload), max_attempts=1)])
    async with app.working(), asyncio.timeout(20):
        while (await app.get(made.id)).state is not JobState.FAILED:  # noqa: ASYNC110 - the state is in the database
            await asyncio.sleep(0.02)
    return made.id


@pytest.mark.parametrize(
    ("function", "payload"),
    [
        (login, {"password": SECRET}),
        (login, {"pasword": 1, "password": SECRET}),
        (login_twice, {"name": "ann", "passwords": [SECRET]}),
        (login_twice, {"passwords": [str(SECRET)]}),
        (login_account, {"account": {"name": "ann", "password": SECRET}}),
        (login_account, {"account": {"password": str(SECRET)}}),
        (login_checked, {"password": str(SECRET)}),
    ],
)
async def test_a_secret_that_cannot_be_read_reaches_neither_viewers_nor_the_log(
    web: Served, function: Callable[..., Any], payload: dict[str, Any]
) -> None:
    log = io.StringIO()
    handler = logging.StreamHandler(log)
    handler.setFormatter(TextFormatter())
    web.app.task(function)
    logging.getLogger("windlass").addHandler(handler)
    try:
        job_id = await failed(web.app, function.__name__, payload)
    finally:
        logging.getLogger("windlass").removeHandler(handler)
    seen = [
        (await web.ask("GET", path, Role.VIEWER)).text
        for path in (f"/api/v1/jobs/{job_id}", f"/api/v1/jobs/{job_id}/executions", "/api/v1/dead-letters", "/")
    ]
    assert "password" in seen[0]
    assert "job failed" in log.getvalue()
    assert not [text for text in (*seen, log.getvalue()) if str(SECRET) in text]


async def test_a_handlers_own_bad_enqueue_shows_its_place_and_no_secret(web: Served) -> None:
    app = web.app
    child = app.task(login_twice)

    @app.task
    async def sign_up() -> None:
        await child.enqueue(name="ann", passwords=[SECRET])  # type: ignore[list-item]  # the slip that is tested

    job_id = await failed(app, "sign_up", {})
    [run] = (await web.ask("GET", f"/api/v1/jobs/{job_id}/executions", Role.VIEWER)).json()["executions"]
    assert "await child.enqueue(name=" in run["stack_trace"]
    assert str(SECRET) not in str(run)


async def test_an_error_of_ours_without_a_frame_of_the_application_has_no_trace(web: Served) -> None:
    web.app.task(login)
    job_id = await failed(web.app, "login", {"password": SECRET})
    [run] = (await web.ask("GET", f"/api/v1/jobs/{job_id}/executions", Role.OPERATOR)).json()["executions"]
    assert (run["error_message"], run["stack_trace"]) == ("password: must be str", None)


async def test_texts_about_a_job_name_no_python(web: Served) -> None:
    @web.app.task(timeout="1.5s")
    async def slow() -> None:
        await asyncio.sleep(60)

    job_id = await failed(web.app, "slow", {})
    assert (await web.app.get(job_id)).last_error == "timed out after 1.5 s"
    assert str(Snooze("0s")) == "snoozed for 0 ms"
    answer = await web.ask("POST", "/api/v1/jobs", json=[])
    assert (answer.status_code, answer.json()["error"]) == (400, "body: must be a JSON object (got [])")


async def test_an_address_that_a_pack_refuses_is_named_once(web: Served) -> None:
    crawl.install(web.app)
    job_id = await failed(web.app, "crawl", {"url": "https://a..b", "source_id": "a"})
    assert (await web.app.get(job_id)).last_error == "url: has a host name that cannot be (got 'https://a..b')"

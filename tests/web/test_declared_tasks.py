"""A server without the application's code enqueues as the code would: options and schema come from the tasks table."""

from __future__ import annotations

import time
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from tests.support.raw import execute
from tests.web.serving import Served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.retry import RetrySpec

JOBS = "/api/v1/jobs"


class Colour(StrEnum):
    """A type that JSON does not know."""

    RED = "red"
    BLUE = "blue"


class Line(BaseModel):
    """One line of an order."""

    sku: str = Field(min_length=1, max_length=5, pattern="^[a-z]+$")
    count: int = Field(ge=1, default=1)


class Order(BaseModel):
    """A payload of its own."""

    lines: list[Line] = Field(max_length=2)
    note: str | None = None


def application(url: str, lane: str = "mails") -> Windlass:
    app = Windlass(url)

    @app.task(
        lane=lane,
        max_attempts=8,
        timeout="90s",
        retry={"profile": "crawl", "base": "7s"},
        priority=5,
        unique=["to", "copies"],
        unique_scope="forever",
        on_conflict="ignore",
        metadata={"team": "mail"},
    )
    async def email(to: str, copies: int = 1, *, urgent: bool | None = None) -> None: ...

    @app.task(unique=True)
    async def paint(colour: Colour, size: float = 1.5) -> None: ...

    @app.task(payload=Order)
    async def order(given: Order) -> None: ...

    @app.task
    async def anything(**values: Any) -> None: ...

    return app


@pytest.fixture
async def declared(web: Served, url: str) -> Served:
    """Give a server that has none of the code, after a worker elsewhere has said what it has."""
    async with application(url) as worker, worker.working():
        pass
    return web


async def make(web: Served, task: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json={"task": task, "payload": payload, **more})
    assert answer.status_code in {200, 201}, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_registered_task_gets_its_own_options(declared: Served) -> None:
    job = await declared.app.get((await make(declared, "email", {"to": "a@example.org"}))["number"])
    assert (job.lane, job.max_attempts, job.timeout_us, job.priority, job.unique_scope, job.metadata_json) == (
        "mails",
        8,
        90_000_000,
        5,
        "forever",
        '{"team":"mail"}',
    )
    assert RetrySpec.decode(job.retry) == RetrySpec(profile="crawl", base=timedelta(seconds=7))


async def test_what_the_enqueuer_gives_wins(declared: Served) -> None:
    made = await make(declared, "email", {"to": "a@example.org"}, lane="fast", max_attempts=2, timeout=5, unique_key="mine")
    job = await declared.app.get(made["number"])
    assert (job.lane, job.max_attempts, job.timeout_us, job.unique_key) == ("fast", 2, 5_000_000, "mine")


@pytest.mark.parametrize(
    ("task", "payload"),
    [
        ("email", {"to": "a@example.org"}),
        ("email", {"to": "a@example.org", "copies": 2}),
        ("paint", {"colour": "red"}),
        ("paint", {"size": 2.5, "colour": "blue"}),
    ],
)
async def test_the_unique_key_is_the_one_that_the_code_computes(
    declared: Served, url: str, task: str, payload: dict[str, Any]
) -> None:
    async with application(url) as owner:
        first = await owner.enqueue(task, payload)
    made = await make(declared, task, payload)
    assert (made["number"], made["duplicate"]) == (first.id, True)


@pytest.mark.parametrize(
    ("task", "payload", "field"),
    [
        ("email", {}, "to: is missing"),
        ("email", {"to": 5}, "to: must be string"),
        ("email", {"to": "a", "copies": "many"}, "copies: must be integer"),
        ("email", {"to": "a", "copies": True}, "copies: must be integer"),
        ("email", {"to": "a", "urgent": 1}, "urgent: must be boolean or null"),
        ("email", {"to": "a", "cc": "b"}, "cc: is not an argument; there are to, copies, urgent"),
        ("paint", {"colour": "green"}, "colour: must be one of"),
        ("paint", {"colour": "red", "size": "big"}, "size: must be number"),
        ("order", {"lines": [{"sku": "abc", "count": 0}]}, "lines.0.count: must be at least 1"),
        ("order", {"lines": [{"sku": "ABC"}]}, "lines.0.sku: must match"),
        ("order", {"lines": [{"sku": ""}]}, "lines.0.sku: must have at least 1 characters"),
        ("order", {"lines": [{"count": 2}]}, "lines.0.sku: is missing"),
        ("order", {"lines": [{"sku": "a"}] * 3}, "lines: must have at most 2 items"),
        ("order", {"lines": [], "note": 7}, "note: must be string or null"),
    ],
)
async def test_a_payload_that_does_not_fit_is_refused_by_its_field(
    declared: Served, task: str, payload: dict[str, Any], field: str
) -> None:
    answer = await declared.ask("POST", JOBS, Role.PRODUCER, json={"task": task, "payload": payload})
    assert (answer.status_code, field in answer.json()["error"]) == (400, True), answer.text
    many = await declared.ask("POST", f"{JOBS}/bulk", Role.PRODUCER, json={"jobs": [{"task": task, "payload": payload}]})
    assert (many.status_code, field in many.json()["error"]) == (400, True), many.text


async def test_a_payload_that_fits_is_taken(declared: Served) -> None:
    await make(declared, "order", {"lines": [{"sku": "abc", "count": 3}], "note": None})
    await make(declared, "anything", {"whatever": [1, {"a": None}]})


async def test_changed_options_are_seen_within_seconds(declared: Served, url: str) -> None:
    assert (await make(declared, "anything", {}))["lane"] == "default"
    assert (await make(declared, "email", {"to": "a"}))["lane"] == "mails"
    async with application(url, lane="slow") as worker, worker.working():
        pass
    ends = time.monotonic() + 20
    number = 0
    while (job := await make(declared, "email", {"to": f"{number}"}))["lane"] != "slow":
        assert time.monotonic() < ends, job
        number += 1


async def test_the_tasks_page_shows_what_was_declared(declared: Served) -> None:
    shown = (await declared.ask("GET", "/api/v1/tasks/email", Role.VIEWER)).json()
    assert (shown["lane"], shown["options"]["max_attempts"], shown["options"]["unique"]) == ("mails", 8, ["to", "copies"])
    assert shown["options"]["schema"] == {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "copies": {"type": "integer", "default": 1},
            "urgent": {"type": ["boolean", "null"], "default": None},
        },
        "required": ["to"],
        "additionalProperties": False,
    }


async def test_a_python_process_without_the_code_enqueues_alike(declared: Served) -> None:
    job = await declared.app.get(await declared.app.enqueue("email", {"to": "b@example.org"}))
    assert (job.lane, job.max_attempts) == ("mails", 8)


async def test_declared_options_cost_no_statement_per_enqueue(declared: Served) -> None:
    declared.app.declared_elsewhere.kept_s = 3600
    await make(declared, "email", {"to": "a"})
    # Asked for again, the task would be unknown now.
    await execute(await declared.app.store(), "delete from windlass_tasks")
    assert (await make(declared, "email", {"to": "b"}))["lane"] == "mails"

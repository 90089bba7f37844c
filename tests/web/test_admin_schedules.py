"""The priority crawl queue's scheduled jobs over HTTP; its JSON examples are sent as they stand in the document."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.audit import AuditFilter
from windlass.core.job import NewJob

SCHEDULES = "/api/admin/scheduled-jobs"
ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
FIELDS = {
    "id",
    "name",
    "description",
    "subreddit_id",
    "cron_expression",
    "enabled",
    "last_run_at",
    "next_run_at",
    "priority",
    "created_at",
    "updated_at",
    "created_by",
}
CREATE = """{
  "name": "daily-askreddit",
  "description": "Daily crawl of AskReddit",
  "subreddit_id": 1,
  "cron_expression": "@daily",
  "enabled": true,
  "priority": 10
}"""
UPDATE = """{
  "name": "hourly-worldnews",
  "description": "Hourly crawl of WorldNews",
  "cron_expression": "@hourly",
  "enabled": true,
  "priority": 20
}"""
TOGGLE = """{
  "enabled": false
}"""
pytestmark = pytest.mark.usefixtures("crawled")


async def send(web: Served, method: str, path: str, text: str) -> Any:
    return await web.ask(method, path, Role.OPERATOR, content=text, headers={"content-type": "application/json"})


async def made(web: Served, **given: Any) -> dict[str, Any]:
    body = {"name": "s", "subreddit_id": 1, "cron_expression": "@every 1h", **given}
    answer = await web.ask("POST", SCHEDULES, Role.OPERATOR, json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def read(web: Served, number: int) -> dict[str, Any]:
    found: dict[str, Any] = (await web.ask("GET", f"{SCHEDULES}/{number}", Role.VIEWER)).json()
    return found


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_the_seeds_example_is_created_listed_changed_toggled_and_deleted(web: Served) -> None:
    answer = await send(web, "POST", SCHEDULES, CREATE)
    assert answer.status_code == 201
    first = answer.json()
    assert set(first) == FIELDS
    assert {name: first[name] for name in ("name", "description", "subreddit_id", "cron_expression", "enabled", "priority")} == {
        "name": "daily-askreddit",
        "description": "Daily crawl of AskReddit",
        "subreddit_id": 1,
        "cron_expression": "@daily",
        "enabled": True,
        "priority": 10,
    }
    assert (first["last_run_at"], first["created_by"].endswith(":operator")) == (None, True)
    assert (at(first["next_run_at"]).hour, at(first["next_run_at"]) > at(first["created_at"])) == (0, True)
    assert (await web.ask("GET", f"{SCHEDULES}?limit=100&offset=0", Role.VIEWER)).json() == [first]
    assert await read(web, first["id"]) == first

    changed = await send(web, "PUT", f"{SCHEDULES}/{first['id']}", UPDATE)
    assert changed.json() == {"ok": True, "job_id": first["id"]}
    second = await read(web, first["id"])
    assert (second["name"], second["cron_expression"], second["priority"]) == ("hourly-worldnews", "@hourly", 20)
    assert (second["subreddit_id"], at(second["next_run_at"]) <= at(first["next_run_at"])) == (1, True)

    toggled = await send(web, "POST", f"{SCHEDULES}/{first['id']}/toggle", TOGGLE)
    assert toggled.json() == {"ok": True, "enabled": False}
    third = await read(web, first["id"])
    assert (third["enabled"], third["next_run_at"]) == (False, second["next_run_at"])
    assert (await web.ask("DELETE", f"{SCHEDULES}/{first['id']}", Role.OPERATOR)).json() == {"ok": True}
    assert (await web.ask("GET", f"{SCHEDULES}/{first['id']}", Role.VIEWER)).status_code == 404
    assert (await web.ask("GET", SCHEDULES)).json() == []

    lines = await (await web.app.store()).audit.list(AuditFilter(target=f"job:{first['id']}"))
    assert [line.action for line in reversed(lines)] == ["create schedule", "edit schedule", "disable", "delete"]


async def test_a_due_schedule_enqueues_a_crawl_and_none_beside_one(web: Served) -> None:
    schedule = await made(web, name="news", subreddit_id=7, priority=30)
    store = await web.app.store()
    slot, hour = at(schedule["next_run_at"]), timedelta(hours=1)
    assert await store.spawn(now=slot - timedelta(seconds=1)) == []
    [child] = await store.spawn(now=slot)
    [job] = (await web.ask("GET", "/api/admin/jobs")).json()
    assert (job["id"], job["subreddit_id"], job["priority"], job["enqueued_by"], job["max_retries"]) == (
        child.id,
        7,
        30,
        "scheduler:news",
        3,
    )
    [again] = await store.spawn(now=slot + hour)
    assert (again.id, again.is_duplicate) == (child.id, True)
    duplicate = await web.ask("POST", "/api/admin/jobs", json={"subreddit_id": 7})
    assert (duplicate.status_code, duplicate.json()["id"]) == (200, child.id)
    left = await read(web, schedule["id"])
    assert (at(left["last_run_at"]), at(left["next_run_at"])) == (slot + hour, slot + 2 * hour)


async def test_a_name_belongs_to_one_schedule(web: Served) -> None:
    first = await made(web, name="one")
    answer = await web.ask("POST", SCHEDULES, Role.OPERATOR, json={"name": "one", "subreddit_id": 2, "cron_expression": "@daily"})
    assert (answer.status_code, "'one'" in answer.text, f"job {first['id']}" in answer.text) == (409, True, True)
    second = await made(web, name="two")
    answer = await web.ask("PUT", f"{SCHEDULES}/{second['id']}", Role.OPERATOR, json={"name": "one", "priority": 9})
    assert (answer.status_code, await read(web, second["id"])) == (409, second)
    assert await read(web, first["id"]) == first


async def test_of_twenty_that_want_one_name_one_gets_it(web: Served) -> None:
    body = {"name": "one", "subreddit_id": 2, "cron_expression": "@daily"}
    answers = await asyncio.gather(*(web.ask("POST", SCHEDULES, Role.OPERATOR, json=body) for _ in range(20)))
    assert sorted(one.status_code for one in answers) == [201] + [409] * 19


@ON_SQLITE
async def test_only_another_cadence_moves_the_next_run(web: Served) -> None:
    first = await made(web, cron_expression="@every 90m")
    assert first["cron_expression"] == "@every 90m"
    path = f"{SCHEDULES}/{first['id']}"
    await web.ask("PUT", path, Role.OPERATOR, json={"priority": 5, "description": "x", "subreddit_id": 9, "enabled": True})
    await web.ask("PUT", path, Role.OPERATOR, json={"cron_expression": "@every 1h30m"})
    same = await read(web, first["id"])
    assert (same["next_run_at"], same["priority"], same["description"], same["subreddit_id"]) == (
        first["next_run_at"],
        5,
        "x",
        9,
    )
    await web.ask("PUT", path, Role.OPERATOR, json={"cron_expression": "@every 30m", "description": None})
    moved = await read(web, first["id"])
    assert (at(moved["next_run_at"]) < at(first["next_run_at"]), moved["description"], moved["cron_expression"]) == (
        True,
        None,
        "@every 30m",
    )
    job = await web.app.get(first["id"])
    assert (job.subject, job.child_key) == ("9", "9")


@ON_SQLITE
async def test_a_schedule_may_begin_disabled_and_does_nothing_then(web: Served) -> None:
    schedule = await made(web, enabled=False)
    assert schedule["enabled"] is False
    store = await web.app.store()
    late = at(schedule["next_run_at"]) + timedelta(days=1)
    assert await store.spawn(now=late) == []
    answer = await web.ask("PUT", f"{SCHEDULES}/{schedule['id']}", Role.OPERATOR, json={"enabled": True})
    assert (answer.status_code, (await read(web, schedule["id"]))["next_run_at"]) == (200, schedule["next_run_at"])
    assert len(await store.spawn(now=late)) == 1


@ON_SQLITE
async def test_a_schedule_that_ended_cannot_be_enabled(web: Served) -> None:
    schedule = await made(web)
    await web.app.cancel(schedule["id"])
    path = f"{SCHEDULES}/{schedule['id']}"
    assert (await read(web, schedule["id"]))["enabled"] is False
    refused = await web.ask("POST", f"{path}/toggle", Role.OPERATOR, json={"enabled": True})
    assert (refused.status_code, "cancelled" in refused.text) == (409, True)
    refused = await web.ask("PUT", path, Role.OPERATOR, json={"enabled": True, "priority": 9})
    assert (refused.status_code, (await read(web, schedule["id"]))["priority"]) == (409, 0)


@ON_SQLITE
async def test_every_documented_expression_comes_back_as_it_was_written(web: Served) -> None:
    names = ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@hourly"]
    for text in [*names, "@every 1h", "@every 30m", "@every 7d", "@every 1.5h", "*/5 1-3 * * MON"]:
        assert (await made(web, name=text, cron_expression=text))["cron_expression"] == text


BAD: list[tuple[dict[str, Any], str]] = [
    ({"cron_expression": "soon"}, "cron_expression"),
    ({"cron_expression": "@every 0s"}, "cron_expression"),
    ({"cron_expression": "@every"}, "cron_expression"),
    ({"cron_expression": "@fortnightly"}, "cron_expression"),
    ({"cron_expression": "61 * * * *"}, "cron_expression"),
    ({"cron_expression": "@handler"}, "cron_expression"),
    ({"cron_expression": ""}, "cron_expression"),
    ({"name": ""}, "name"),
    ({"name": "a\nb"}, "name"),
    ({"name": "x" * 256}, "name"),
    ({"subreddit_id": "one"}, "subreddit_id"),
    ({"priority": 101}, "priority"),
    ({"enabled": "yes"}, "enabled"),
    ({"lane": "x"}, "lane"),
]


@ON_SQLITE
async def test_bad_schedules_are_refused_and_named(web: Served) -> None:
    kept = await made(web)
    for body, field in BAD:
        whole = {"name": "other", "subreddit_id": 1, "cron_expression": "@daily", **body}
        for method, path, sent in (("POST", "", whole), ("PUT", f"/{kept['id']}", body)):
            answer = await web.ask(method, f"{SCHEDULES}{path}", Role.OPERATOR, json=sent)
            assert (answer.status_code, field in answer.json()["error"]) == (400, True), answer.text
    assert (await web.ask("GET", SCHEDULES)).json() == [kept]


@ON_SQLITE
async def test_what_is_no_scheduled_crawl_is_not_found(web: Served) -> None:
    store = await web.app.store()
    [plain] = await store.enqueue([NewJob(task="crawl", subject="1")])
    for number in (plain.id, 999, "x", 2**70):
        for method, path, body in (
            ("GET", "", None),
            ("PUT", "", {"priority": 1}),
            ("DELETE", "", None),
            ("POST", "/toggle", {"enabled": True}),
        ):
            answer = await web.ask(method, f"{SCHEDULES}/{number}{path}", json=body)
            assert answer.status_code == 404, (method, number)

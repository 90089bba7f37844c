"""Jobs over HTTP in our own form: made, listed, read, edited, deleted."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from tests.web.serving import Served, served
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.ids import job_uuid
from windlass.core.job import JobState, NewJob
from windlass.core.known_task import DeclaredTask

JOBS = "/api/v1/jobs"
ONLY_FILE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def make(web: Served, **fields: Any) -> dict[str, Any]:
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json={"task": "work", "lane": "pull", **fields})
    assert answer.status_code in {200, 201}, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def numbers(web: Served, query: str = "") -> list[int]:
    answer = await web.ask("GET", f"{JOBS}?{query}", Role.VIEWER)
    assert answer.status_code == 200, answer.text
    return [one["number"] for one in answer.json()["jobs"]]


async def test_every_field_of_a_job_comes_back(web: Served) -> None:
    given: dict[str, Any] = {
        "payload": {"a": [1, None, {"b": "ü"}], "1.5": 1.5},
        "lane": "pull",
        "priority": 7,
        "run_at": "2031-01-02T03:04:05.000006Z",
        "max_attempts": 9,
        "subject": "s",
        "unique_key": "k",
        "unique_scope": "forever",
        "correlation_id": "c",
        "target_count": 5,
        "item_key": ["phone", "name"],
        "collection": "found",
        "metadata": {"m": 1},
    }
    made = await make(web, **given, timeout="1m30s", on_conflict="ignore")
    assert made == made | given
    assert (made["status"], made["state"], made["wait_reason"], made["timeout_ms"]) == ("scheduled", "scheduled", "delay", 90_000)
    assert (made["max_retries"], made["retry_backoff_seconds"], made["duplicate"]) == (8, 30, False)
    assert (made["created_by"].endswith(":producer"), made["source_id"], made["url"]) == (True, "s", None)
    for ref in (made["id"], made["number"], made["id"].upper()):
        shown = (await web.ask("GET", f"{JOBS}/{ref}", Role.VIEWER)).json()
        assert shown | {"duplicate": False} == made | {"result": None}


async def test_a_recurring_job_has_its_cadence(web: Served) -> None:
    fields = {"name": "nightly", "cron": "0 3 * * *", "timezone": "Europe/Berlin"}
    made = await make(web, **fields)
    assert (made["cadence"], made["timezone"], made["schedule_time"]) == ("0 3 * * *", "Europe/Berlin", "0 3 * * *")
    assert (made["status"], made["enabled"], made["schedule_enabled"]) == ("scheduled", True, True)
    again = await web.ask("POST", JOBS, json={"task": "work", "lane": "pull", **fields})
    assert (again.status_code, again.json()["duplicate"], again.json()["id"]) == (200, True, made["id"])
    often = await make(web, every="90m", fixed_rate=True, start_at="2031-01-01T00:00:00Z")
    assert (often["interval_minutes"], often["interval_type"], often["next_run_at"]) == (90, "minutes", "2031-01-01T00:00:00Z")
    assert (await make(web, every=7200))["interval_type"] == "hours"
    assert (await make(web, every="90s"))["interval_minutes"] is None


async def test_duplicates_are_told(web: Served) -> None:
    first = await make(web, unique_key="k", payload={"n": 1})
    answer = await web.ask("POST", JOBS, json={"task": "work", "lane": "pull", "unique_key": "k", "payload": {"n": 2}})
    assert (answer.status_code, answer.json()["duplicate"], answer.json()["number"]) == (200, True, first["number"])
    assert answer.json()["payload"] == {"n": 1}
    replaced = await make(web, unique_key="k", payload={"n": 3}, on_conflict="replace")
    assert (replaced["duplicate"], replaced["payload"]) == (True, {"n": 3})
    refused = await web.ask("POST", JOBS, json={"task": "work", "lane": "pull", "unique_key": "k", "on_conflict": "reject"})
    assert (refused.status_code, f"job {first['number']}" in refused.json()["error"]) == (409, True)


async def test_racing_enqueues_of_one_key_make_one_job(web: Served) -> None:
    made = await asyncio.gather(*(make(web, unique_key="k", payload={"n": n}) for n in range(20)))
    assert len({one["id"] for one in made}) == 1
    assert sum(not one["duplicate"] for one in made) == 1
    assert await numbers(web) == [made[0]["number"]]


async def test_a_task_must_be_known_outside_lane_pull(web: Served) -> None:
    @web.app.task
    async def here(n: int) -> None: ...

    refused = await web.ask("POST", JOBS, json={"task": "nobody", "payload": {}})
    assert (refused.status_code, refused.json()["error"].startswith("task:")) == (400, True)
    assert (await web.ask("POST", JOBS, json={"task": here.name, "payload": {"n": 1}})).status_code == 201
    wrong = await web.ask("POST", JOBS, json={"task": here.name, "payload": {"n": "x"}})
    assert (wrong.status_code, "n" in wrong.json()["error"]) == (400, True)
    await (await web.app.store()).tasks.declare([DeclaredTask(name="elsewhere")])
    for _ in range(2):
        assert (await web.ask("POST", JOBS, json={"task": "elsewhere"})).status_code == 201
    assert (await web.ask("POST", JOBS, json={"task": "outside", "lane": "pull"})).json()["max_retries"] == 4


BAD: list[tuple[dict[str, Any], str]] = [
    ({"task": ""}, "task"),
    ({"task": "x" * 201}, "task"),
    ({"task": 5}, "task"),
    ({"task": "a\nb"}, "task"),
    ({"payload": []}, "payload"),
    ({"payload": {"n": 2**70}}, "body"),
    ({"priority": 101}, "priority"),
    ({"priority": -1}, "priority"),
    ({"priority": "7"}, "priority"),
    ({"priority": True}, "priority"),
    ({"run_at": "2031-01-01T00:00:00"}, "run_at"),
    ({"run_at": "9999-01-01T00:00:00Z"}, "run_at"),
    ({"run_at": 12345}, "run_at"),
    ({"run_at": "2031-01-01T00:00:00Z", "delay": 5}, "delay"),
    ({"delay": "soon"}, "delay"),
    ({"delay": -1}, "delay"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"max_attempts": 3, "max_retries": 2}, "max_retries"),
    ({"timeout": 0}, "timeout"),
    ({"name": "n"}, "name"),
    ({"every": "1s", "cron": "@daily"}, "cron"),
    ({"every": "1ms"}, "every"),
    ({"cron": "61 * * * *"}, "cron"),
    ({"timezone": "UTC"}, "timezone"),
    ({"cron": "@daily", "timezone": "Nowhere/Else"}, "timezone"),
    ({"fixed_rate": True}, "fixed_rate"),
    ({"unique_scope": "always"}, "unique_scope"),
    ({"on_conflict": "maybe"}, "on_conflict"),
    ({"every": "1h", "unique_key": "k", "unique_scope": "pending"}, "unique_scope"),
    ({"target_count": -1}, "target_count"),
    ({"item_key": []}, "item_key"),
    ({"item_key": "phone"}, "item_key"),
    ({"metadata": 5}, "metadata"),
    ({"url": "https://example.com"}, "url"),
    ({"id": 5}, "id"),
]


@ONLY_FILE
async def test_bad_fields_are_named_and_nothing_is_made(web: Served) -> None:
    for fields, name in BAD:
        answer = await web.ask("POST", JOBS, json={"task": "work", "lane": "pull", **fields})
        assert (answer.status_code, answer.json()["error"].partition(":")[0].partition(".")[0]) == (400, name), answer.text
    for body in (b"", b"[]", b"5", b"null", b"{}", b'{"lane":"pull"}', b'{"task":"a","task":"b"}', b"{,}", b'{"task":"a"} x'):
        answer = await web.ask("POST", JOBS, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400, body
    assert await numbers(web) == []


async def test_lists_filter_by_the_words_of_the_face(web: Served) -> None:
    fresh = await make(web, lane="pull", subject="s1")
    later = await make(web, task="other", delay="1h", correlation_id="c", payload={"find": "me"})
    often = await make(web, every="1h")
    ran = (await make(web, every="1h", run_at="2020-01-01T00:00:00Z"))["number"]
    store = await web.app.store()
    await store.promote()
    due = (await web.ask("GET", f"{JOBS}/{ran}")).json()
    # Due, and yet no fresh job: the interval scheduler calls it scheduled, and may pause it.
    assert (due["state"], due["status"], due["wait_reason"]) == ("pending", "scheduled", "recurrence")
    dead = (await make(web))["number"]
    assert (await web.ask("POST", f"{JOBS}/{dead}/bury")).status_code == 200
    one, two, three = fresh["number"], later["number"], often["number"]
    found = {
        "": [dead, ran, three, two, one],
        "status=pending": [one],
        "status=scheduled": [ran, three, two],
        "status=scheduled,%20failed": [dead, ran, three, two],
        "status=running": [],
        "task=other": [two],
        "lane=pull": [dead, ran, three, two, one],
        "lane=nothing": [],
        "source_id=s1": [one],
        "search=FIND": [two],
        "correlation_id=c": [two],
        f"correlation_id={job_uuid(one)}": [one],
        f"correlation_id={one}": [],
        "since=2999-01-01T00:00:00Z": [],
        "sort_order=asc": [one, two, three, ran, dead],
        "sort_by=next_run_at&status=scheduled&sort_order=asc": [ran, *([two, three])],
        "limit=2": [dead, ran],
        "limit=2&offset=2": [three, two],
        "limit=1000000": [dead, ran, three, two, one],
        "search=&status=&task=": [dead, ran, three, two, one],
    }
    for query, expected in found.items():
        assert await numbers(web, query) == expected, query
    page = (await web.ask("GET", f"{JOBS}?status=scheduled&limit=2&sort_by=priority")).json()
    shown = ("total", "is_total_exact", "limit", "offset", "sort_by", "sort_order", "is_complete")
    assert [page[name] for name in shown] == [3, True, 2, 0, "priority", "desc", True]
    assert (await web.ask("GET", JOBS)).json()["limit"] == 50
    assert (await web.ask("GET", f"{JOBS}?limit=501")).json()["limit"] == 500


async def test_a_cursor_goes_through_all_jobs(web: Served) -> None:
    made = [(await make(web, priority=n % 3))["number"] for n in range(7)]
    for query in ("", "sort_by=priority", "sort_order=asc", "search=work"):
        seen: list[int] = []
        cursor = ""
        while True:
            page = (await web.ask("GET", f"{JOBS}?limit=3&{query}&cursor={quote(cursor)}")).json()
            seen += [one["number"] for one in page["jobs"]]
            assert page["total"] == 7
            if (cursor := page["next_cursor"] or "") == "":
                break
        assert sorted(seen) == made


@ONLY_FILE
async def test_bad_questions_are_refused(web: Served) -> None:
    bad = (
        *("status=queued", "status=pending,nope", "sort_by=payload", "sort_by=id;drop", "sort_order=up", "limit=0", "limit=-1"),
        *("limit=x", "offset=-1", "offset=10001", "cursor=abc", "since=yesterday", "since=5", "since=2020-01-01T00:00:00"),
        *(f"task={'x' * 201}", "search=%00", "cursor=abc&offset=3", "stauts=failed", "=1"),
    )
    for query in bad:
        answer = await web.ask("GET", f"{JOBS}?{query}")
        assert (answer.status_code, list(answer.json())) == (400, ["error"]), query


async def test_a_job_and_its_children_are_found_by_its_own_uuid(web: Served) -> None:
    parent = await make(web)
    assert parent["correlation_id"] == parent["id"]
    [child, grandchild] = await web.app.enqueue_jobs(
        [
            NewJob(task="work", parent_id=parent["number"], correlation_id=parent["id"]),
            NewJob(task="work", correlation_id=parent["id"]),
        ]
    )
    await make(web)
    for query in (f"correlation_id={parent['id']}", f"correlation_id={parent['id'].upper()}"):
        assert await numbers(web, query) == [grandchild.id, child.id, parent["number"]]
    shown = (await web.ask("GET", f"{JOBS}/{child.id}")).json()
    assert (shown["parent_id"], shown["correlation_id"]) == (parent["id"], parent["id"])


async def test_secrets_are_hidden_from_viewers(web: Served) -> None:
    secret = {"api_key": "k-123", "nested": [{"password": "p"}], "to": "ann"}
    made = await make(web, payload=secret, metadata={"token": "t", "note": "n"})
    hidden = (await web.ask("GET", f"{JOBS}/{made['id']}", Role.VIEWER)).json()
    assert hidden["payload"] == {"api_key": "[redacted]", "nested": [{"password": "[redacted]"}], "to": "ann"}
    assert hidden["metadata"] == {"token": "[redacted]", "note": "n"}
    [listed] = (await web.ask("GET", JOBS, Role.VIEWER)).json()["jobs"]
    assert listed["payload"] == hidden["payload"]
    for role in (Role.PRODUCER, Role.OPERATOR, Role.ADMIN):
        assert (await web.ask("GET", f"{JOBS}/{made['id']}", role)).json()["payload"] == secret


EVIL = [
    "'; drop table windlass_jobs; --",
    "<script>alert(1)</script>",
    '"}{"',
    "%27 or 1=1",
    "ünï/çødé",
    "{id}",
    "../..",
    "\u202e",
    "%_\\",
]


@ONLY_FILE
async def test_markup_and_sql_come_back_as_data(web: Served) -> None:
    for text in EVIL:
        fields: dict[str, Any] = dict.fromkeys(("task", "subject", "unique_key", "correlation_id", "collection"), text)
        fields |= {"payload": {text: text}, "item_key": [text], "metadata": {text: [text]}}
        made = await make(web, **fields)
        assert made == made | fields
        listed = await web.ask("GET", f"{JOBS}?task={quote(text)}&search={quote(text)}&correlation_id={quote(text)}")
        assert [one["id"] for one in listed.json()["jobs"]] == [made["id"]]
        assert listed.headers["content-type"] == "application/json"
        buried = await web.ask("POST", f"{JOBS}/{made['id']}/bury", json={"error": text})
        assert buried.json()["error_message"] == text


async def test_an_edit_changes_what_it_says_and_nothing_else(web: Served) -> None:
    made = await make(web, every="1h", payload={"a": 1}, metadata={"m": 1})
    path = f"{JOBS}/{made['id']}"

    async def edit(**fields: Any) -> dict[str, Any]:
        answer = await web.ask("PUT", path, Role.OPERATOR, json=fields)
        assert answer.status_code == 200, answer.text
        edited: dict[str, Any] = answer.json()
        return edited

    edited = await edit(payload={"b": 2}, priority=5, max_retries=8, timeout="5s", description="d")
    assert (edited["payload"], edited["priority"], edited["base_priority"], edited["max_attempts"]) == ({"b": 2}, 5, 5, 9)
    assert (edited["metadata"], edited["next_run_at"], edited["timeout_ms"]) == ({"m": 1}, made["next_run_at"], 5000)
    hours = await edit(interval_minutes=2, interval_type="hours")
    assert (hours["interval_minutes"], hours["interval_type"], hours["cadence"]) == (2, "hours", "@every 2h")
    assert hours["next_run_at"] > made["next_run_at"]
    assert (await edit(interval_minutes=3))["cadence"] == "@every 3h"
    assert (await edit(interval_type="days"))["cadence"] == "@every 3d"
    same = await edit(interval_minutes=72, interval_type="hours")
    assert (same["cadence"], same["interval_minutes"]) == ("@every 3d", 72)
    cron = await edit(cron="0 4 * * *", timezone="Europe/Berlin")
    assert (cron["schedule_time"], cron["timezone"], cron["interval_minutes"]) == ("0 4 * * *", "Europe/Berlin", None)
    moved = await edit(timezone="Asia/Tokyo")
    assert (moved["cadence"], moved["next_run_at"] != cron["next_run_at"]) == ("0 4 * * *", True)
    off = await edit(schedule_enabled=False)
    assert (off["status"], off["schedule_enabled"], off["enabled"], off["is_paused"]) == ("paused", False, False, True)
    on = await edit(schedule_enabled=True)
    assert (on["status"], on["schedule_enabled"], on["next_run_at"]) == ("scheduled", True, moved["next_run_at"])
    assert await edit() | {"updated_at": 0} == on | {"updated_at": 0}


@pytest.mark.usefixtures("crawled")
async def test_a_crawl_s_url_is_edited_in_its_payload(web: Served) -> None:
    made = (await web.ask("POST", JOBS, json={"url": "https://example.com/a", "source_name": "One"})).json()
    edited = (await web.ask("PUT", f"{JOBS}/{made['id']}", json={"url": "https://example.org/b", "source_name": "Two"})).json()
    assert (edited["url"], edited["source_name"], edited["source_id"]) == ("https://example.org/b", "Two", "One")
    assert edited["payload"] == {"source_id": "One", "source_name": "Two", "url": "https://example.org/b"}
    other = await make(web)
    refused = await web.ask("PUT", f"{JOBS}/{other['id']}", json={"url": "https://example.org"})
    assert (refused.status_code, refused.json()["error"].startswith("url:")) == (400, True)


async def test_bad_edits_are_refused(web: Served) -> None:
    once, often = await make(web), await make(web, every="1h")
    done = await make(web)
    await web.ask("POST", f"{JOBS}/{done['id']}/cancel")
    refused: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        (often, {"status": "paused"}, "status"),
        (often, {"state": "paused"}, "state"),
        (often, {"priority": 101}, "priority"),
        (often, {"max_attempts": 2, "max_retries": 2}, "max_retries"),
        (often, {"cron": "nonsense"}, "cron"),
        (often, {"every": "1h", "cron": "@daily"}, "cron"),
        (often, {"interval_type": "weeks"}, "interval_type"),
        (often, {"timezone": "Mars/Base"}, "timezone"),
        (once, {"every": "1h"}, "cadence"),
        (once, {"interval_minutes": 5}, "interval_minutes"),
        (once, {"timezone": "UTC"}, "timezone"),
        (once, {"schedule_enabled": True}, "schedule_enabled"),
        (often, {"payload": []}, "payload"),
        (done, {"priority": 5}, "cannot edit job 3"),
        (done, {"retry_backoff_seconds": 5}, "cannot edit job 3"),
    ]
    for job, fields, text in refused:
        answer = await web.ask("PUT", f"{JOBS}/{job['id']}", json=fields)
        assert (answer.status_code, answer.json()["error"].startswith(text)) == (400, True), answer.text
    assert (await web.ask("PUT", f"{JOBS}/{once['id']}", json={"schedule_enabled": False})).json()["status"] == "pending"
    assert (await web.ask("PUT", f"{JOBS}/99", json={"priority": 5})).status_code == 404


async def test_racing_edits_of_different_fields_all_count(web: Served) -> None:
    made = await make(web, every="1h")
    edits: list[dict[str, Any]] = [
        {"interval_minutes": 5, "interval_type": "minutes"},
        {"timezone": "Europe/Berlin"},
        {"fixed_rate": True},
        {"retry_backoff_seconds": 17},
        {"metadata": {"a": 1}},
        {"max_retries": 7},
    ]
    await asyncio.gather(*(web.ask("PUT", f"{JOBS}/{made['id']}", json=one) for one in edits))
    left = (await web.ask("GET", f"{JOBS}/{made['id']}")).json()
    for one in edits:
        assert left == left | one


async def test_a_job_is_deleted_unless_somebody_holds_it(web: Served) -> None:
    held = await make(web)
    store = await web.app.store()
    await store.override_status([held["number"]], JobState.RUNNING, by="ann", lease_length=timedelta(minutes=5))
    refused = await web.ask("DELETE", f"{JOBS}/{held['id']}")
    assert (refused.status_code, "holds its lease" in refused.json()["error"]) == (409, True)
    shown = (await web.ask("GET", f"{JOBS}/{held['id']}")).json()
    assert (shown["status"], shown["worker"], shown["lock_acquired_at"] is not None) == ("running", "operator:ann", True)
    token = (await store.get(held["number"])).token
    assert shown["lock_token"] is not None
    assert str(token) not in str(shown)
    free = await make(web)
    gone = await web.ask("DELETE", f"{JOBS}/{free['number']}")
    assert (gone.status_code, gone.json()["id"]) == (200, free["id"])
    for method in ("GET", "DELETE", "PUT"):
        assert (await web.ask(method, f"{JOBS}/{free['id']}", json={} if method == "PUT" else None)).status_code == 404


@ONLY_FILE
async def test_what_no_job_can_be_called_is_not_found(web: Served) -> None:
    await make(web)
    execution = "b17d0000-0001-8004-8000-000000000001"
    for ref in ("0", "-1", "01", "99999999999999999999", "x", "%20", execution, "123e4567-e89b-12d3-a456-426614174000", "1.0"):
        for method, path in (("GET", ""), ("GET", "/executions"), ("GET", "/stats"), ("DELETE", ""), ("POST", "/pause")):
            answer = await web.ask(method, f"{JOBS}/{ref}{path}")
            assert answer.status_code == 404, (method, ref, path)


@ONLY_FILE
async def test_fixed_paths_are_not_taken_for_ids(web: Served) -> None:
    assert (await web.ask("GET", f"{JOBS}/bulk")).status_code == 405
    assert (await web.ask("POST", f"{JOBS}/bulk", json={})).status_code == 400
    assert (await web.ask("GET", "/api/v1/queue/stats")).status_code == 200
    assert (await web.ask("GET", "/api/v1/scheduler/metrics")).status_code == 200


async def test_two_servers_give_the_same_answers(url: str, web: Served) -> None:
    made = await make(web, every="1h")
    async with served(Windlass(url, admin_token="static-admin-token")) as other:
        for path in (f"{JOBS}/{made['id']}", JOBS, "/api/v1/queue/stats", f"{JOBS}/{made['id']}/stats"):
            assert (await other.ask("GET", path)).json() == (await web.ask("GET", path)).json()
        assert (await other.ask("POST", f"{JOBS}/{made['id']}/pause")).json()["status"] == "paused"
        assert (await web.ask("POST", f"{JOBS}/{made['id']}/pause")).status_code == 400

"""Pulls of several lanes and tasks, and reports in full words, over HTTP."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.web.serving import Served
from windlass.core.access import NewToken, Role
from windlass.core.job import NewJob

ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def pull(web: Served, **body: Any) -> httpx2.Response:
    return await web.ask("POST", "/api/pull_job", Role.WORKER, json=body)


async def report(web: Served, job: dict[str, Any], **body: Any) -> httpx2.Response:
    told = {"job_id": job["id"], "attempt_id": job["attempt_id"], **body}
    return await web.ask("POST", "/api/report_results", Role.WORKER, json=told)


async def enqueued(web: Served, *pairs: tuple[str, str]) -> list[int]:
    store = await web.app.store()
    return [job.id for job in await store.enqueue([NewJob(task=task, lane=lane) for lane, task in pairs])]


async def test_a_pull_takes_the_next_job_of_its_lanes_and_tasks_and_leaves_the_others(web: Served) -> None:
    numbers = await enqueued(web, ("other", "mail"), ("pull", "find"), ("slow", "mail"), ("pull", "mail"), ("other", "find"))
    wanted = {"lanes": ["pull", "other"], "tasks": ["mail"]}
    taken = [(await pull(web, **wanted)).json()["job"] for _ in range(3)]
    assert [job and job["id"] for job in taken] == [numbers[0], numbers[3], None]
    assert (taken[0]["lane"], taken[0]["execution"], taken[0]["consecutive_failures"]) == ("other", 1, 0)
    rest = [(await pull(web, lanes=["slow", "pull", "other"])).json()["job"]["id"] for _ in range(3)]
    assert sorted(rest) == sorted({*numbers} - {numbers[0], numbers[3]})


@ON_SQLITE
async def test_the_same_pull_gives_the_same_lease(web: Served) -> None:
    await enqueued(web, ("pull", "find"), ("pull", "find"))
    first, again = [(await pull(web, lanes=["pull", "other"], pull_id="mine")).json() for _ in range(2)]
    assert first["job"]["attempt_id"] == again["job"]["attempt_id"]


@ON_SQLITE
async def test_nothing_comes_while_all_lanes_are_paused(web: Served) -> None:
    store = await web.app.store()
    await store.lanes.pause("pull")
    assert (await pull(web, lanes=["pull", "other"])).json() == {"job": None}
    await store.lanes.pause("other")
    assert (await pull(web, lanes=["pull", "other"])).json() == {"job": None, "stopped": True}


@ON_SQLITE
async def test_a_token_serves_only_its_lanes_and_bad_pulls_are_refused(web: Served) -> None:
    tokens = (await web.app.store()).tokens
    secret = (await tokens.mint(NewToken(name="narrow", role=Role.WORKER, lanes=("pull",)))).secret
    body = {"lanes": ["pull", "other"]}
    refused = await web.client.post("/api/pull_job", json=body, headers={"authorization": f"Bearer {secret}"})
    assert (refused.status_code, "other" in refused.json()["error"]) == (403, True)
    bad: list[dict[str, Any]] = [
        {},
        {"lanes": []},
        {"lanes": [""]},
        {"lanes": "pull"},
        {"lanes": ["a"], "tasks": [1]},
        {"lanes": ["a"], "x": 1},
    ]
    bad += [{"lanes": ["a"], "wait": -1}, {"lanes": ["a"], "lease_sec": "60"}, {"lanes": ["a"] * 101}, {"lanes": ["a\n"]}]
    assert [(await pull(web, **one)).status_code for one in bad] == [400] * len(bad)


async def test_a_report_in_full_words_is_answered_with_the_jobs_state(web: Served) -> None:
    [number] = await enqueued(web, ("pull", "find"))
    job = (await pull(web, lanes=["pull"])).json()["job"]
    going = (await report(web, job, outcome={"kind": "running", "progress_count": 3}, items=[{"phone": "1"}])).json()
    assert (going["state"], going["added"], going["done"]) == ("running", 1, False)
    failed = {"kind": "failed", "error": "no route", "error_type": "OSError", "stack_trace": "line 1", "retry_after_sec": 60}
    ends = [(await report(web, job, outcome=failed, idempotency_key="end")).json() for _ in range(2)]
    assert [(end["state"], end.get("idempotent")) for end in ends] == [("scheduled", None), ("scheduled", True)]
    shown = (await web.ask("GET", f"/api/v1/jobs/{number}/executions")).json()["executions"][0]
    assert (shown["error_message"], shown["error_type"], shown["stack_trace"]) == ("no route", "OSError", "line 1")
    assert (await web.ask("GET", f"/api/v1/jobs/{number}")).json()["progress_count"] == 3


@ON_SQLITE
async def test_a_plain_report_is_answered_as_before(web: Served) -> None:
    await enqueued(web, ("pull", "find"))
    job = (await pull(web, lanes=["pull"])).json()["job"]
    assert "state" not in (await report(web, job, done=True)).json()


@ON_SQLITE
async def test_words_that_mean_nothing_are_refused_and_change_nothing(web: Served) -> None:
    [number] = await enqueued(web, ("pull", "find"))
    job = (await pull(web, lanes=["pull"])).json()["job"]
    for outcome in (
        {},
        "completed",
        {"kind": "finished"},
        {"kind": "failed"},
        {"kind": "failed", "error": 1},
        {"kind": "failed", "error": "x", "reason": "lease_expired"},
        {"kind": "failed", "error": "x", "retry_after_sec": -1},
        {"kind": "failed", "error": "x", "retry_after_sec": 1e300},
        {"kind": "snoozed"},
        {"kind": "snoozed", "for_sec": "10"},
        {"kind": "running", "progress_count": -1},
        {"kind": "running", "result": 1},
        {"kind": "completed", "run_again_at": "2026-01-01T00:00"},
        {"kind": "completed", "cpu_time_ms": 1.5},
        {"kind": "completed", "metadata": []},
    ):
        assert (await report(web, job, outcome=outcome)).status_code == 400, outcome
    for also in ({"done": True}, {"error": "boom"}):
        assert (await report(web, job, outcome={"kind": "running"}, **also)).status_code == 400
    kept = await (await web.app.store()).get(number)
    assert (kept.state, kept.progress_count) == ("running", 0)

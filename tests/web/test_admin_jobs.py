"""The priority crawl queue's jobs over HTTP; its JSON examples are sent as they stand in the document."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.audit import AuditFilter
from windlass.core.cadence import Every, Recurrence
from windlass.core.job import Claimed, JobState, Lease, NewJob
from windlass.core.outcome import Failure, Outcome, Raised, Returned, Run, decide
from windlass.core.retry import RetrySpec
from windlass.errors import LeaseLost

JOBS = "/api/admin/jobs"
ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
FIELDS = {
    "id",
    "subreddit_id",
    "status",
    "priority",
    "retries",
    "retry_count",
    "max_retries",
    "visible_at",
    "next_retry_at",
    "last_attempt",
    "duration_ms",
    "enqueued_by",
    "created_at",
    "updated_at",
}
SET_QUEUED = '{\n  "status": "queued"\n}'
PRIORITY_50 = '{\n  "priority": 50\n}'
BOOST_20 = '{\n  "boost": 20\n}'
BULK_STATUS = '{\n  "job_ids": [1, 2, 3, 4, 5],\n  "status": "queued"\n}'
BULK_RETRY = '{\n  "job_ids": [1, 2, 3, 4, 5]\n}'
pytestmark = pytest.mark.usefixtures("crawled")


async def send(web: Served, route: str, text: str, role: Role = Role.ADMIN) -> Any:
    method, path = route.split()
    return await web.ask(method, path, role, content=text, headers={"content-type": "application/json"})


async def crawl(web: Served, subreddit_id: int = 1, **more: Any) -> dict[str, Any]:
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json={"subreddit_id": subreddit_id, **more})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def shown(web: Served, number: int) -> dict[str, Any]:
    [one] = [job for job in (await web.ask("GET", JOBS, Role.VIEWER)).json() if job["id"] == number]
    found: dict[str, Any] = one
    return found


async def claim(web: Served) -> Claimed:
    store = await web.app.store()
    await store.promote()
    [claimed] = await store.claim(await store.slices(), 1, Lease(Random().getrandbits(62), "w", timedelta(seconds=60)))
    return claimed


async def finish(web: Served, job: Claimed, outcome: Outcome) -> None:
    store = await web.app.store()
    now = await store.clock()
    assert await store.finish([decide(job, outcome, Run(job.claimed_at, now), now=now, rng=Random(1))])


async def fail(web: Served) -> Claimed:
    job = await claim(web)
    await finish(web, job, Raised(Failure("boom", "RuntimeError")))
    return job


async def stats(web: Served) -> dict[str, int]:
    found: dict[str, int] = (await web.ask("GET", f"{JOBS}/stats", Role.VIEWER)).json()
    return found


@ON_SQLITE
async def test_a_job_is_enqueued_once_and_shown_with_every_field(web: Served) -> None:
    made = await crawl(web, 7, priority=60, max_retries=5)
    assert set(made) == FIELDS
    assert {name: made[name] for name in ("subreddit_id", "status", "priority", "retry_count", "retries", "max_retries")} == {
        "subreddit_id": 7,
        "status": "queued",
        "priority": 60,
        "retry_count": 0,
        "retries": 0,
        "max_retries": 5,
    }
    assert (made["enqueued_by"], made["next_retry_at"], made["last_attempt"], made["duration_ms"]) == ("api", None, None, None)
    assert made["visible_at"] == made["created_at"]
    again = await web.ask("POST", JOBS, Role.PRODUCER, json={"subreddit_id": 7, "priority": 1})
    assert (again.status_code, again.json()) == (200, made)
    assert (await web.ask("GET", JOBS, Role.VIEWER)).json() == [made]
    job = await web.app.get(made["id"])
    assert (job.task, job.subject, job.unique_key, job.retry) == ("crawl", "7", "7", "crawl")


@ON_SQLITE
async def test_the_defaults_are_the_seeds(web: Served) -> None:
    made = await crawl(web)
    assert (made["priority"], made["max_retries"]) == (0, 3)


async def test_a_job_goes_through_the_seeds_lifecycle(web: Served) -> None:
    number = (await crawl(web))["id"]
    assert await stats(web) == {"queued": 1, "running": 0, "failed": 0, "completed": 0, "total": 1}
    held = await claim(web)
    running = await shown(web, number)
    assert (running["status"], running["retry_count"], running["duration_ms"]) == ("crawling", 0, None)
    assert (await stats(web))["running"] == 1
    await finish(web, held, Raised(Failure("boom", "RuntimeError")))
    failed = await shown(web, number)
    assert (failed["status"], failed["retry_count"], failed["visible_at"]) == ("failed", 1, failed["next_retry_at"])
    waited = datetime.fromisoformat(failed["next_retry_at"]) - datetime.fromisoformat(failed["updated_at"])
    assert timedelta(seconds=47) < waited < timedelta(seconds=73)
    assert await stats(web) == {"queued": 0, "running": 0, "failed": 1, "completed": 0, "total": 1}
    answer = await web.ask("POST", f"{JOBS}/{number}/retry", Role.OPERATOR)
    assert (answer.status_code, answer.json()) == (200, {"ok": True, "job_id": number})
    assert (await shown(web, number))["retry_count"] == 0
    await finish(web, await claim(web), Returned())
    done = await shown(web, number)
    assert (done["status"], done["retry_count"], done["duration_ms"] >= 0, done["next_retry_at"]) == ("success", 0, True, None)
    assert await stats(web) == {"queued": 0, "running": 0, "failed": 0, "completed": 1, "total": 1}


@ON_SQLITE
async def test_a_job_fails_for_good_after_its_last_retry(web: Served) -> None:
    number = (await crawl(web, max_retries=0))["id"]
    await fail(web)
    dead = await shown(web, number)
    assert (dead["status"], dead["max_retries"], dead["next_retry_at"]) == ("failed", 0, None)
    assert (await web.ask("POST", f"{JOBS}/{number}/retry", Role.OPERATOR)).status_code == 200
    assert (await shown(web, number))["status"] == "queued"


@ON_SQLITE
async def test_only_a_failed_job_is_retried(web: Served) -> None:
    number = (await crawl(web))["id"]
    for status, state in (("queued", "pending"), ("crawling", "running"), ("success", "completed")):
        assert (await web.ask("PUT", f"{JOBS}/{number}/status", json={"status": status})).status_code == 200
        answer = await web.ask("POST", f"{JOBS}/{number}/retry", Role.OPERATOR)
        assert (answer.status_code, f"{state} → pending" in answer.text) == (409, True)


@ON_SQLITE
async def test_a_retry_into_a_taken_slot_names_the_holder(web: Served) -> None:
    first = (await crawl(web, max_retries=0))["id"]
    await fail(web)
    second = (await crawl(web))["id"]
    answer = await web.ask("POST", f"{JOBS}/{first}/retry", Role.OPERATOR)
    assert (answer.status_code, f"job {second}" in answer.text) == (409, True)
    override = await send(web, f"PUT {JOBS}/{first}/status", SET_QUEUED)
    assert (override.status_code, f"job {second}" in override.text) == (409, True)
    bulk = await web.ask("POST", f"{JOBS}/bulk/retry", Role.OPERATOR, json={"job_ids": [first]})
    assert bulk.json() == {"ok": True, "success_count": 0, "total_count": 1}


async def test_an_override_revokes_the_lease_and_is_audited(web: Served) -> None:
    number = (await crawl(web))["id"]
    held = await claim(web)
    answer = await send(web, f"PUT {JOBS}/{number}/status", SET_QUEUED)
    assert answer.json() == {"ok": True, "job_id": number}
    store = await web.app.store()
    now = await store.clock()
    late = decide(held, Returned(), Run(held.claimed_at, now), now=now, rng=Random(1))
    assert await store.finish([late]) == {}
    with pytest.raises(LeaseLost):
        await store.progress(number, held.token, count=1)
    [line] = await store.audit.list(AuditFilter(action="override"))
    assert (line.target, line.principal.endswith(":admin"), line.outcome) == (f"job:{number}", True, "done")


@ON_SQLITE
async def test_crawling_set_by_hand_ends_after_the_set_time(web: Served) -> None:
    number = (await crawl(web))["id"]
    await web.ask("PUT", f"{JOBS}/{number}/status", json={"status": "crawling"})
    job = await web.app.get(number)
    assert job.lease_expires_at is not None
    assert job.claimed_at is not None
    assert (job.state, (job.worker or "").startswith("operator:")) == (JobState.RUNNING, True)
    assert job.lease_expires_at - job.claimed_at == timedelta(minutes=15)
    store = await web.app.store()
    assert await store.reclaim(now=job.lease_expires_at + timedelta(seconds=1)) == [number]
    assert (await shown(web, number))["status"] == "failed"


@ON_SQLITE
async def test_every_documented_status_can_be_set(web: Served) -> None:
    number = (await crawl(web))["id"]
    for status in ("crawling", "success", "failed", "queued"):
        assert (await web.ask("PUT", f"{JOBS}/{number}/status", json={"status": status})).status_code == 200
        assert (await shown(web, number))["status"] == status
        listed = (await web.ask("GET", f"{JOBS}?status={status}&limit=100&offset=0", Role.VIEWER)).json()
        assert [one["id"] for one in listed] == [number]


@ON_SQLITE
async def test_priorities_are_set_and_boosted_up_to_a_hundred(web: Served) -> None:
    number = (await crawl(web))["id"]
    answer = await send(web, f"PUT {JOBS}/{number}/priority", PRIORITY_50, Role.OPERATOR)
    assert answer.json() == {"ok": True, "job_id": number, "new_priority": 50}
    answer = await send(web, f"POST {JOBS}/{number}/boost", BOOST_20, Role.OPERATOR)
    assert answer.json() == {"ok": True, "job_id": number, "new_priority": 70}
    answer = await web.ask("POST", f"{JOBS}/{number}/boost", Role.OPERATOR, json={"boost": 5000})
    assert answer.json()["new_priority"] == 100
    assert (await shown(web, number))["priority"] == 100


@ON_SQLITE
async def test_bulk_answers_how_many_of_the_sent_have_changed(web: Served) -> None:
    for subreddit_id in (1, 2, 3):
        await crawl(web, subreddit_id, max_retries=0)
    for _ in range(2):
        await fail(web)
    retried = await send(web, f"POST {JOBS}/bulk/retry", BULK_RETRY, Role.OPERATOR)
    assert retried.json() == {"ok": True, "success_count": 2, "total_count": 5}
    queued = await send(web, f"PUT {JOBS}/bulk/status", BULK_STATUS)
    assert queued.json() == {"ok": True, "success_count": 3, "total_count": 5}
    assert (await stats(web))["queued"] == 3
    twice = await web.ask("PUT", f"{JOBS}/bulk/status", json={"job_ids": [1, 1], "status": "success"})
    assert twice.json() == {"ok": True, "success_count": 1, "total_count": 2}


async def test_jobs_of_other_tasks_and_templates_are_not_seen_and_not_touched(web: Served) -> None:
    store = await web.app.store()
    every = Recurrence(cadence=Every(timedelta(hours=1)))
    template = NewJob(task="crawl", name="t", recurrence=every, spawn=True)
    buried = NewJob(task="crawl", name="b", recurrence=every, spawn=True)
    again = NewJob(task="crawl", name="again", recurrence=every, subject="news", retry=RetrySpec(profile="interval"))
    other, first, second, recurring = [one.id for one in await store.enqueue([NewJob(task="mail"), template, buried, again])]
    await store.bury([second], "no longer wanted")
    listed = (await web.ask("GET", JOBS, Role.VIEWER)).json()
    assert [(one["id"], one["subreddit_id"], one["enqueued_by"]) for one in listed] == [(recurring, "news", "system")]
    assert await stats(web) == {"queued": 1, "running": 0, "failed": 0, "completed": 0, "total": 1}
    for number in (other, first, 999, "x", "stats"):
        for method, path, body in (
            ("PUT", "status", {"status": "success"}),
            ("PUT", "priority", {"priority": 1}),
            ("POST", "boost", {"boost": 1}),
            ("POST", "retry", None),
        ):
            answer = await web.ask(method, f"{JOBS}/{number}/{path}", json=body)
            assert (answer.status_code, list(answer.json())) == (404, ["error"]), (number, path)
    answer = await web.ask("PUT", f"{JOBS}/bulk/status", json={"job_ids": [other, first, second], "status": "success"})
    assert answer.json()["success_count"] == 0


@ON_SQLITE
async def test_paused_and_cancelled_keep_their_word_outside_the_counts(web: Served) -> None:
    first, second = [(await crawl(web, number))["id"] for number in (1, 2)]
    await web.app.cancel(first)
    store = await web.app.store()
    [later] = await store.enqueue([NewJob(task="crawl", subject="3", delay=timedelta(hours=1))])
    await web.app.pause(later)
    assert await stats(web) == {"queued": 1, "running": 0, "failed": 0, "completed": 0, "total": 1}
    words = {one["id"]: one["status"] for one in (await web.ask("GET", JOBS)).json()}
    assert words == {first: "cancelled", second: "queued", later.id: "paused"}
    assert [one["id"] for one in (await web.ask("GET", f"{JOBS}?status=paused")).json()] == [later.id]


@ON_SQLITE
async def test_lists_are_paged_capped_and_empty_without_jobs(web: Served) -> None:
    assert (await web.ask("GET", JOBS)).json() == []
    assert await stats(web) == {"queued": 0, "running": 0, "failed": 0, "completed": 0, "total": 0}
    numbers = [(await crawl(web, number))["id"] for number in range(1, 5)]
    pages = [(await web.ask("GET", f"{JOBS}?status=queued&limit=2&offset={offset}")).json() for offset in (0, 2, 4)]
    assert [[one["id"] for one in page] for page in pages] == [numbers[:1:-1], numbers[1::-1], []]
    assert len((await web.ask("GET", f"{JOBS}?limit=1000000")).json()) == 4


@ON_SQLITE
async def test_an_old_failure_is_found_behind_many_that_wait(web: Served) -> None:
    numbers = [(await crawl(web, number, max_retries=0))["id"] for number in (1, 2)]
    for _ in numbers:
        await fail(web)
    waiting = NewJob(task="crawl", delay=timedelta(hours=1), created_by="test")
    await (await web.app.store()).enqueue([waiting] * 10_050)
    listed = (await web.ask("GET", f"{JOBS}?status=failed")).json()
    assert [one["id"] for one in listed] == numbers[::-1]
    assert [one["id"] for one in (await web.ask("GET", f"{JOBS}?status=failed&offset=1")).json()] == numbers[:1]
    assert await stats(web) == {"queued": 10_050, "running": 0, "failed": 2, "completed": 0, "total": 10_052}


BAD: list[tuple[str, str, Any, str]] = [
    ("POST", "", {}, "subreddit_id"),
    ("POST", "", {"subreddit_id": "1"}, "subreddit_id"),
    ("POST", "", {"subreddit_id": True}, "subreddit_id"),
    ("POST", "", {"subreddit_id": 0}, "subreddit_id"),
    ("POST", "", {"subreddit_id": 2**64}, "64 bits"),
    ("POST", "", {"subreddit_id": 1, "priority": 101}, "priority"),
    ("POST", "", {"subreddit_id": 1, "priority": -1}, "priority"),
    ("POST", "", {"subreddit_id": 1, "max_retries": -1}, "max_retries"),
    ("POST", "", {"subreddit_id": 1, "priorty": 1}, "priorty"),
    ("PUT", "/1/status", {"status": "paused"}, "status"),
    ("PUT", "/1/status", {}, "status"),
    ("PUT", "/1/priority", {"priority": 101}, "priority"),
    ("PUT", "/1/priority", {"priority": "50"}, "priority"),
    ("POST", "/1/boost", {"boost": 0}, "boost"),
    ("POST", "/1/boost", {}, "boost"),
    ("PUT", "/bulk/status", {"job_ids": [], "status": "queued"}, "job_ids"),
    ("PUT", "/bulk/status", {"job_ids": ["1"], "status": "queued"}, "job_ids"),
    ("PUT", "/bulk/status", {"job_ids": [1], "status": "done"}, "status"),
    ("POST", "/bulk/retry", {"job_ids": list(range(1, 502))}, "job_ids"),
    ("GET", "?status=waiting", None, "status"),
    ("GET", "?limit=0", None, "limit"),
    ("GET", "?offset=-1", None, "offset"),
]


@ON_SQLITE
async def test_bad_input_is_refused_and_named(web: Served) -> None:
    for method, path, body, field in BAD:
        answer = await web.ask(method, f"{JOBS}{path}", json=body)
        assert (answer.status_code, list(answer.json()), field in answer.json()["error"]) == (400, ["error"], True), answer.text
    assert (await stats(web))["total"] == 0


async def test_twenty_that_enqueue_at_once_make_one_job(web: Served) -> None:
    asked = [web.ask("POST", JOBS, Role.PRODUCER, json={"subreddit_id": 5}) for _ in range(20)]
    answers = await asyncio.gather(*asked)
    assert sorted(one.status_code for one in answers) == [200] * 19 + [201]
    assert len({one.json()["id"] for one in answers}) == 1


@ON_SQLITE
async def test_times_are_given_in_utc(web: Served) -> None:
    made = await crawl(web)
    assert datetime.fromisoformat(made["created_at"]).utcoffset() == UTC.utcoffset(None)

"""What operators do to jobs over HTTP, and how runs are shown."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from tests.store.builders import failure
from tests.web.serving import Served
from windlass import Windlass
from windlass.compat import jobs
from windlass.core.access import Role
from windlass.core.ids import execution_uuid, job_uuid
from windlass.core.job import Claimed, Lease, NewJob
from windlass.core.outcome import Raised, Returned, Run, decide
from windlass.core.payload import encode_object
from windlass.store import open_database, views

JOBS = "/api/v1/jobs"
HEALTH = "select status, sum(job_count) from job_queue_health group by status"
ONLY_FILE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def make(web: Served, **fields: Any) -> str:
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json={"task": "work", "lane": "pull", **fields})
    assert answer.status_code == 201, answer.text
    return f"{JOBS}/{answer.json()['id']}"


async def post(web: Served, path: str, **body: Any) -> dict[str, Any]:
    answer = await web.ask("POST", path, Role.OPERATOR, **({"json": body} if body else {}))
    assert answer.status_code in {200, 201}, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def claimed(web: Served) -> Claimed:
    store = await web.app.store()
    await store.promote()
    lease = Lease(web.app._rng.getrandbits(62), "worker-1", timedelta(minutes=5))
    [job] = await store.claim(await store.slices(), 1, lease)
    return job


async def test_every_verb_answers_the_row_it_left(web: Served) -> None:
    path = await make(web, every="1h")
    assert (await post(web, f"{path}/disable"))["enabled"] is False
    assert (await post(web, f"{path}/enable"))["enabled"] is True
    assert (await post(web, f"{path}/boost"))["priority"] == 10
    assert (await post(web, f"{path}/boost", amount=95))["base_priority"] == 100
    due = await post(web, f"{path}/run-now")
    assert (due["state"], due["slot_at"] is not None) == ("pending", True)
    await claimed(web)
    running = (await web.ask("GET", path)).json()
    assert (running["status"], running["running_since"] is not None, running["next_run_at"]) == ("running", True, None)
    assert (await post(web, f"{path}/stop"))["status"] == "running"
    assert (await post(web, f"{path}/run-now"))["status"] == "running"
    taken = await post(web, f"{path}/take-lease")
    assert (taken["worker"], taken["lock_token"], taken["status"]) == (None, None, "scheduled")
    buried = await post(web, f"{path}/bury", error="enough")
    assert (buried["status"], buried["last_error"], buried["next_run_at"]) == ("failed", "enough", None)
    assert (await post(web, f"{path}/retry"))["status"] == "pending"
    cancelled = await post(web, f"{path}/cancel", reason="no longer wanted")
    assert (cancelled["status"], cancelled["done_reason"]) == ("cancelled", "cancelled")
    clone = await post(web, f"{path}/clone")
    assert (clone["parent_id"], clone["created_by"].endswith(":operator")) == (cancelled["id"], True)
    assert clone["id"] != cancelled["id"]


async def test_a_job_that_comes_back_shows_when_its_last_run_ended(web: Served) -> None:
    path = await make(web, every="1h", run_at="2020-01-01T00:00:00Z")
    job = await claimed(web)
    assert (await web.ask("GET", path)).json()["last_run_at"] is None
    store = await web.app.store()
    run = Run(started_at=job.claimed_at, finished_at=job.claimed_at + timedelta(seconds=3))
    await store.finish([decide(job, Returned(), run, now=job.claimed_at, rng=web.app._rng)])
    shown = (await web.ask("GET", path)).json()
    assert (shown["status"], shown["last_run_at"]) == ("scheduled", shown["completed_at"])
    assert shown["last_run_at"] > shown["started_at"]


async def test_a_run_is_failed_by_hand(web: Served) -> None:
    path = await make(web, max_retries=1)
    await claimed(web)
    failed = await post(web, f"{path}/fail", error="by hand")
    assert (failed["status"], failed["wait_reason"], failed["next_retry_at"] is not None) == ("scheduled", "retry", True)
    assert (failed["current_retry_count"], failed["error_message"]) == (1, "by hand")
    refused = await web.ask("POST", f"{path}/retry")
    assert (refused.status_code, "scheduled → pending" in refused.json()["error"]) == (400, True)
    dead = await post(web, f"{path}/fail", will_retry=False)
    assert (dead["status"], dead["current_retry_count"]) == ("failed", 1)


async def test_refused_moves_name_both_states(web: Served) -> None:
    path = await make(web)
    refused = {
        "pause": "pending → paused",
        "resume": "pending → scheduled",
        "retry": "pending → pending",
        "stop": "pending → scheduled",
        "clone": "pending → pending",
        "take-lease": "pending → scheduled",
    }
    for verb, text in refused.items():
        answer = await web.ask("POST", f"{path}/{verb}", Role.OPERATOR)
        assert (answer.status_code, text in answer.json()["error"]) == (400, True), answer.text
    await post(web, f"{path}/cancel")
    for verb in (*refused.keys() - {"clone"}, "enable", "disable", "boost", "fail", "bury", "run-now", "cancel"):
        answer = await web.ask("POST", f"{path}/{verb}", Role.OPERATOR)
        assert (answer.status_code, "cancelled → " in answer.json()["error"]) == (400, True), answer.text


async def test_a_retry_into_a_taken_slot_names_the_holder(web: Served) -> None:
    path = await make(web, unique_key="k")
    await post(web, f"{path}/bury")
    await make(web, unique_key="k")
    answer = await web.ask("POST", f"{path}/retry", Role.OPERATOR)
    assert (answer.status_code, "job 2" in answer.json()["error"]) == (409, True)


async def test_of_racing_verbs_one_wins(web: Served) -> None:
    path = await make(web, every="1h")
    answers = await asyncio.gather(*(web.ask("POST", f"{path}/pause", Role.OPERATOR) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200, *[400] * 7]
    answers = await asyncio.gather(*(web.ask("POST", f"{path}/{verb}", Role.OPERATOR) for verb in ("cancel", "resume", "bury")))
    left = (await web.ask("GET", path)).json()["status"]
    assert left in {"cancelled", "failed"}
    assert all(answer.json()["status"] in {"cancelled", "scheduled", "failed"} for answer in answers if answer.status_code == 200)


@ONLY_FILE
async def test_bad_bodies_of_verbs_are_refused(web: Served) -> None:
    path = await make(web, every="1h")
    for verb, body in (
        ("boost", {"amount": 0}),
        ("boost", {"amount": 101}),
        ("boost", {"amount": "5"}),
        ("boost", {"by": 5}),
        ("cancel", {"reason": ""}),
        ("bury", {"error": "x" * 4001}),
        ("fail", {"will_retry": "no"}),
    ):
        assert (await web.ask("POST", f"{path}/{verb}", json=body)).status_code == 400, (verb, body)
    assert (await web.ask("POST", f"{path}/boost", content=b"{", headers={"content-type": "application/json"})).status_code == 400


async def test_what_operators_do_is_audited_and_what_producers_do_is_not(web: Served) -> None:
    path = await make(web, every="1h")
    await post(web, f"{path}/pause")
    await web.ask("PUT", path, Role.OPERATOR, json={"priority": 3})
    lines = (await web.ask("GET", "/api/v1/audit")).json()["audit"]
    assert [line["action"] for line in lines] == ["edit", "pause"]
    assert all(line["principal"].endswith(":operator") for line in lines)


async def test_executions_are_listed_newest_first_with_the_running_one(web: Served) -> None:
    path = await make(web, every="1h", max_retries=5)
    store = await web.app.store()
    for number in range(3):
        await post(web, f"{path}/run-now")
        job = await claimed(web)
        now = await store.clock()
        run = Run(
            started_at=job.claimed_at, finished_at=now, log_excerpt="log", cpu_time_ms=7, memory_peak_mb=9, items_crawled=number
        )
        result = failure() if number == 1 else Returned(encode_object({"api_key": "x", "n": number}))
        assert isinstance(result, Returned | Raised)
        await store.finish([decide(job, result, run=run, now=now, rng=web.app._rng, profiles=web.app.settings.profiles)])
    await post(web, f"{path}/run-now")
    await claimed(web)
    listed = (await web.ask("GET", f"{path}/executions")).json()
    assert ([one["execution_number"] for one in listed["executions"]], listed["total"]) == ([4, 3, 2, 1], 4)
    assert [one["status"] for one in listed["executions"]] == ["running", "completed", "failed", "completed"]
    page = (await web.ask("GET", f"{path}/executions?limit=2&offset=1")).json()
    assert ([one["execution_number"] for one in page["executions"]], page["limit"], page["offset"]) == ([3, 2], 2, 1)
    failed = listed["executions"][2]
    assert (failed["reason"], failed["error_message"] is not None, failed["retry_attempt"]) == ("error", True, 0)
    done = listed["executions"][1]
    assert (done["items_crawled"], done["cpu_time_ms"], done["memory_peak_mb"], done["worker"]) == (2, 7, 9, "worker-1")
    assert (done["result"], done["log_excerpt"]) == ({"api_key": "x", "n": 2}, "log")
    assert (await web.ask("GET", path)).json()["result"] == done["result"]
    hidden = (await web.ask("GET", f"/api/v1/executions/{done['id']}", Role.VIEWER)).json()
    assert hidden["result"] == {"api_key": "[redacted]", "n": 2}
    stats = (await web.ask("GET", f"{path}/stats")).json()
    assert (stats["total_executions"], stats["successful_runs"], stats["failed_runs"]) == (3, 2, 1)
    assert stats["success_rate"] == pytest.approx(2 / 3)


@ONLY_FILE
async def test_executions_of_nothing(web: Served) -> None:
    path = await make(web)
    empty = (await web.ask("GET", f"{path}/executions")).json()
    assert (empty["executions"], empty["total"]) == ([], 0)
    stats = (await web.ask("GET", f"{path}/stats")).json()
    zeros = dict.fromkeys(("total_executions", "successful_runs", "failed_runs", "average_duration_ms", "success_rate"), 0)
    assert stats == {**zeros, "last_execution_at": None, "next_scheduled_at": stats["next_scheduled_at"]}
    for ref in (execution_uuid(1, 1), execution_uuid(99, 1), job_uuid(1), "1", "x", "123e4567-e89b-12d3-a456-426614174000"):
        assert (await web.ask("GET", f"/api/v1/executions/{ref}")).status_code == 404, ref
    for query in ("limit=0", "offset=-1", "limit=x"):
        assert (await web.ask("GET", f"{path}/executions?{query}")).status_code == 400


async def test_the_queue_in_a_glance(web: Served) -> None:
    empty = (await web.ask("GET", "/api/v1/queue/stats", Role.VIEWER)).json()
    assert empty == {"pending": 0, "processing": 0, "failed": 0, "scheduled": 0, "oldest_pending_minutes": 0}
    path = await make(web)
    await claimed(web)
    await post(web, f"{path}/fail")
    await make(web)
    await claimed(web)
    await make(web, run_at="2020-01-01T00:00:00Z")
    await make(web, delay="1h")
    await make(web, name="nightly", every="1d")
    found = (await web.ask("GET", "/api/v1/queue/stats")).json()
    assert (found["pending"], found["processing"], found["failed"], found["scheduled"]) == (1, 1, 1, 2)
    assert found["oldest_pending_minutes"] > 60 * 24 * 365


async def test_every_count_of_pending_is_what_is_due_and_waits_for_a_slot(web: Served, url: str) -> None:
    path = await make(web)
    await claimed(web)
    await post(web, f"{path}/fail")
    [retried] = (await (await web.app.store()).list_jobs()).jobs
    await (await web.app.store()).promote(now=retried.run_at)
    await make(web)
    await make(web, delay="1h")
    await make(web, name="nightly", every="1d")
    assert (await web.ask("GET", path)).json()["status"] == "scheduled"
    stats = (await web.ask("GET", "/api/v1/queue/stats", Role.VIEWER)).json()
    metrics = (await web.ask("GET", "/api/v1/scheduler/metrics", Role.VIEWER)).json()["jobs"]
    [lane] = (await web.ask("GET", "/api/v1/lanes", Role.VIEWER)).json()["lanes"]
    with Windlass(url) as app, closing(open_database(url, rng=Random(1))) as database:
        views.install(database)
        kept = jobs.get_queue_stats(app)["pending"]
        health = database.run_script(lambda found: dict(found.execute(HEALTH).fetchall()))
    pending = (stats["pending"], metrics["pending"], lane["counts"]["pending"], kept, health["pending"])
    assert pending == (2, 2, 2, 2, 2)
    assert (stats["scheduled"], metrics["scheduled"], lane["counts"]["scheduled"], health["scheduled"]) == (2, 2, 2, 2)


async def test_metrics_know_what_upkeep_did_last(web: Served) -> None:
    metrics = (await web.ask("GET", "/api/v1/scheduler/metrics", Role.VIEWER)).json()
    assert (metrics["last_check_at"], metrics["last_metrics_update"]) == (None, None)
    store = await web.app.store()
    for chore in ("promote", "fold", "age"):
        permit = await store.chores.due(chore, timedelta(seconds=1), "somebody")
        assert permit is not None
        await store.chores.done(permit, 1, timedelta(milliseconds=3))
    runs = {chore.name: chore.last_run_at for chore in await store.chores.list()}
    metrics = (await web.ask("GET", "/api/v1/scheduler/metrics")).json()
    for field, chore in (("last_check_at", "promote"), ("last_metrics_update", "fold")):
        last = runs[chore]
        assert last is not None
        assert metrics[field][:23] == last.isoformat()[:23]


async def test_many_jobs_are_enqueued_all_or_none(web: Served) -> None:
    jobs: list[dict[str, Any]] = [{"task": "work", "lane": "pull", "payload": {"n": n}} for n in range(1200)]
    jobs += [{"task": "work", "lane": "pull", "unique_key": "k"}] * 2
    made = (await web.ask("POST", f"{JOBS}/bulk", Role.PRODUCER, json={"jobs": jobs})).json()
    assert (made["total"], made["enqueued"], made["duplicates"]) == (1202, 1201, 1)
    assert [one["duplicate"] for one in made["jobs"][-2:]] == [False, True]
    shown = (await web.ask("GET", f"{JOBS}/{made['jobs'][700]['id']}")).json()
    assert shown["payload"] == {"n": 700}
    bad = [*jobs[:600], {"task": "work", "lane": "pull", "unique_key": "k", "on_conflict": "reject"}]
    assert (await web.ask("POST", f"{JOBS}/bulk", json={"jobs": bad})).status_code == 409
    refused: list[dict[str, Any]] = [
        {"jobs": []},
        {"jobs": [{"task": "work", "lane": "pull"}, {"task": "nobody"}]},
        {"jobs": [{"task": "work", "lane": "pull"}, {"task": "work", "lane": "pull", "delay": "soon"}]},
        {"jobs": [{"url": "https://example.com"}]},
        {"jobs": [{"task": "work", "lane": "pull"}] * 10_001},
    ]
    for body in refused:
        assert (await web.ask("POST", f"{JOBS}/bulk", json=body)).status_code == 400
    assert (await web.ask("GET", JOBS)).json()["total"] == 1201


async def test_bulk_actions_count_exactly(web: Served) -> None:
    await web.app.enqueue_jobs(NewJob(task="old" if n % 2 else "new", lane="pull", payload="{}") for n in range(700))
    path = "/api/v1/bulk"

    async def bulk(**body: Any) -> tuple[int, int, int, int]:
        answer = await web.ask("POST", path, Role.OPERATOR, json=body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["action"] == body["action"]
        return found["matched"], found["changed"], found["refused"], found["missing"]

    assert await bulk(action="cancel", filter={"task": ["old"]}, dry_run=True) == (350, 0, 0, 0)
    assert await bulk(action="cancel", filter={"task": ["old"]}) == (350, 350, 0, 0)
    assert await bulk(action="cancel", filter={"task": ["old"]}) == (350, 0, 350, 0)
    assert await bulk(action="cancel", filter={"task": ["old"], "status": ["pending"]}) == (0, 0, 0, 0)
    ids = [1, str(job_uuid(3)), 3, 2, 99_999, "nonsense"]
    assert await bulk(action="boost", ids=ids, amount=7) == (3, 2, 1, 3)
    assert await bulk(action="boost", ids=ids, dry_run=True) == (3, 0, 0, 3)
    assert await bulk(action="delete", ids=[1, 2], filter={"status": ["cancelled"]}) == (1, 1, 0, 1)
    assert (await web.ask("GET", f"{JOBS}/2")).status_code == 404
    assert (await web.ask("GET", f"{JOBS}/1")).json()["priority"] == 7
    assert await bulk(action="set_priority", ids=[1], priority=3) == (1, 1, 0, 0)
    assert await bulk(action="bury", ids=[1], reason="spent") == (1, 1, 0, 0)
    assert (await web.ask("GET", f"{JOBS}/1")).json()["error_message"] == "spent"
    assert await bulk(action="retry", filter={"status": ["failed"]}) == (1, 1, 0, 0)
    assert await bulk(action="clone", filter={"status": ["cancelled"]}) == (349, 349, 0, 0)
    assert await bulk(action="pause", filter={}, dry_run=True) == (1048, 0, 0, 0)
    lines = (await web.ask("GET", "/api/v1/audit?limit=3")).json()["audit"]
    assert lines[0]["principal"].endswith(":operator")


@ONLY_FILE
async def test_bad_bulks_are_refused(web: Served) -> None:
    bad: list[dict[str, Any]] = [
        {"action": "cancel"},
        {"action": "override_status", "filter": {}},
        {"action": "nothing", "filter": {}},
        {"action": "cancel", "filter": {"status": ["queued"]}},
        {"action": "cancel", "filter": {"status": []}},
        {"action": "cancel", "filter": {"name": "x"}},
        {"action": "cancel", "ids": []},
        {"action": "cancel", "ids": [True]},
        {"action": "cancel", "ids": [1] * 10_001},
        {"action": "cancel", "filter": {}, "amount": 5},
        {"action": "set_priority", "filter": {}},
        {"action": "boost", "filter": {}, "amount": 0},
        {"action": "boost", "filter": {}, "dry_run": "yes"},
    ]
    for body in bad:
        answer = await web.ask("POST", "/api/v1/bulk", json=body)
        assert (answer.status_code, list(answer.json())) == (400, ["error"]), body

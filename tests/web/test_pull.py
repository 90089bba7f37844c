"""Pull workers over HTTP: what they get, for how long, and in which words they are refused."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.raw import execute
from tests.web.conftest import SETTINGS
from tests.web.serving import Served, served
from windlass import Windlass
from windlass.config import load
from windlass.core.access import NewToken, Role
from windlass.core.breaker import BreakerSpec
from windlass.core.job import NewJob
from windlass.core.retry import RetrySpec
from windlass.errors import ConfigError
from windlass.store import Store

SQLITE_ONLY = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)


async def store_of(web: Served) -> Store:
    store = await web.app.store()
    assert isinstance(store, Store)
    return store


async def enqueue(web: Served, task: str = "leads", **options: Any) -> int:
    answer = await web.ask("POST", "/api/v1/jobs", json={"task": task, "lane": "pull", "payload": {"q": 1}} | options)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["number"])


def as_worker(name: str) -> dict[str, str]:
    return {"x-worker-id": name, "x-internal-secret": "shared-worker-secret"}


async def pull(web: Served, query: str = "", worker: str = "w1", status: int = 200) -> Any:
    answer = await web.ask("GET", f"/api/pull_job{query}", None, headers=as_worker(worker))
    assert answer.status_code == status, answer.text
    return answer.json()


async def post(web: Served, body: Any, *, worker: str = "w1", path: str = "/api/report_results") -> tuple[int, Any]:
    answer = await web.ask("POST", path, None, headers=as_worker(worker), json=body)
    return answer.status_code, answer.json()


async def report(web: Served, job: Any, *, worker: str = "w1", status: int = 200, **said: Any) -> Any:
    told, answer = await post(web, {"job_id": job["id"], "attempt_id": job["attempt_id"]} | said, worker=worker)
    assert told == status, answer
    return answer


async def shown(web: Served, number: int) -> Any:
    return (await web.ask("GET", f"/api/v1/jobs/{number}")).json()


async def hurry(web: Served, column: str) -> None:
    """Let every waiting job be due, or every lease be over, and have the upkeep see it."""
    store = await store_of(web)
    past = "1" if store.database.dialect == "sqlite" else "'2020-01-01T00:00:00Z'"
    where = "state = 'scheduled'" if column == "run_at" else "token is not null"
    await execute(store, f"update windlass_jobs set {column} = {past} where {where}")
    if column == "lease_expires_at":
        await store.reclaim()
    await store.promote()


@pytest.mark.parametrize("ending", ["", ".php"])
async def test_a_job_is_pulled_reported_on_and_done(web: Served, ending: str) -> None:
    number = await enqueue(web, target_count=5)
    got = await pull(web, f"{ending}?lease_sec=90")
    job = got["job"]
    assert (job["id"], job["task"], job["payload"], job["attempts"], job["max_attempts"]) == (number, "leads", {"q": 1}, 1, 5)
    assert (job["last_cursor"], job["target_count"], job["progress_count"], job["result_count"]) == (None, 5, 0, 0)
    assert got["lease_sec"] == 90
    path = f"/api/report_results{ending}"
    body = {"job_id": number, "attempt_id": job["attempt_id"], "items": [{"phone": "1"}, {"phone": "1"}], "cursor": "page 2"}
    status, said = await post(web, body, path=path)
    assert (status, said["ok"], said["added"], said["duplicates"], said["done"]) == (200, True, 1, 1, False)
    done = await report(web, job, done=True)
    assert (done["done"], done["done_reason"], done["lease_expires_at"]) == (True, "no_more_results", None)
    assert await pull(web, ending) == {"job": None}


@SQLITE_ONLY
@pytest.mark.parametrize(("asked", "given"), [("", 180), ("0", 30), ("-5", 30), ("29", 30), ("300", 300), ("9" * 30, 600)])
async def test_the_lease_is_clamped(web: Served, asked: str, given: int) -> None:
    await enqueue(web)
    got = await pull(web, f"?lease_sec={asked}" if asked else "")
    left = datetime.fromisoformat(got["lease_expires_at"]) - await (await store_of(web)).clock()
    assert got["lease_sec"] == given
    assert timedelta(seconds=given - 10) < left <= timedelta(seconds=given)


@SQLITE_ONLY
async def test_the_default_lease_is_the_setting_of_the_moment(web: Served) -> None:
    await enqueue(web)
    assert (await pull(web))["lease_sec"] == 180
    answer = await web.ask("PUT", "/api/v1/settings/LEASE_SEC_DEFAULT", json={"value": 60})
    assert answer.status_code == 200
    give_up = asyncio.get_running_loop().time() + 1.5
    while True:
        await enqueue(web)
        if (await pull(web))["lease_sec"] == 60:
            break
        assert asyncio.get_running_loop().time() < give_up


@SQLITE_ONLY
async def test_the_order_of_picking_is_the_setting_of_the_moment(web: Served) -> None:
    answer = await web.ask("PUT", "/api/v1/settings/PICK_ORDER", json={"value": "alphabetical"})
    assert answer.status_code == 400
    assert (await web.ask("PUT", "/api/v1/settings/PICK_ORDER", json={"value": "newest"})).status_code == 200
    first, second = await enqueue(web), await enqueue(web)
    assert [(await pull(web))["job"]["id"] for _ in range(2)] == [second, first]


def test_the_order_of_picking_is_read_from_the_environment() -> None:
    assert load(environ={"PICK_ORDER": "fair"}).pick_order == "fair"
    with pytest.raises(ConfigError, match=r"PICK_ORDER: must be one of fifo, newest, random, fair \(got 'sideways'\)"):
        load(environ={"PICK_ORDER": "sideways"})


async def test_the_pull_api_backs_off_then_fails_for_good_with_one_row_for_each_attempt(web: Served) -> None:
    number = await enqueue(web)
    for attempt, (low, high) in enumerate([(30, 36), (60, 72), (120, 144), (240, 288)], start=1):
        job = (await pull(web, worker=f"w{attempt}"))["job"]
        assert (job["id"], job["attempts"]) == (number, attempt)
        said = await report(web, job, worker=f"w{attempt}", error="blocked", log="tail of the log", cursor=f"c{attempt}")
        assert (said["done"], said["lease_expires_at"]) == (False, None)
        left = await shown(web, number)
        wait = datetime.fromisoformat(left["next_retry_at"]) - datetime.fromisoformat(left["last_error_at"])
        assert timedelta(seconds=low) <= wait <= timedelta(seconds=high)
        assert await pull(web) == {"job": None}
        await hurry(web, "run_at")
    last = (await pull(web, worker="w5"))["job"]
    assert (last["attempts"], last["last_cursor"]) == (5, "c4")
    assert (await report(web, last, worker="w5", error="blocked"))["done"] is True
    assert (await shown(web, number))["state"] == "failed"
    await hurry(web, "run_at")
    assert await pull(web) == {"job": None}
    [letter] = await (await store_of(web)).list_dead_letters(number)
    assert letter.error == "blocked"
    runs = await (await store_of(web)).list_executions(number)
    assert [(run.number, run.worker, str(run.status), run.reason) for run in reversed(runs)] == [
        (attempt, f"w{attempt}", "failed", "error") for attempt in range(1, 6)
    ]
    assert runs[-1].log_excerpt == "tail of the log"


@SQLITE_ONLY
async def test_the_backoff_is_capped_before_the_jitter_by_settings_that_hold_at_once(web: Served) -> None:
    await web.ask("PUT", "/api/v1/settings/BACKOFF_BASE_SEC", json={"value": 3600})
    number = await enqueue(web)
    for _ in range(2):
        job = (await pull(web))["job"]
        await report(web, job, error="blocked")
        left = await shown(web, number)
        wait = datetime.fromisoformat(left["next_retry_at"]) - datetime.fromisoformat(left["last_error_at"])
        assert timedelta(seconds=3600) <= wait <= timedelta(seconds=4320)
        await hurry(web, "run_at")


async def test_a_late_worker_changes_nothing_and_the_second_ones_end_stands(web: Served) -> None:
    number = await enqueue(web)
    slow = (await pull(web, worker="a"))["job"]
    await report(web, slow, worker="a", items=[{"phone": "1"}], cursor="page 2")
    await hurry(web, "lease_expires_at")
    quick = (await pull(web, worker="b"))["job"]
    assert (quick["id"], quick["attempts"], quick["last_cursor"], quick["result_count"]) == (number, 2, "page 2", 1)
    assert quick["attempt_id"] != slow["attempt_id"]
    before = await shown(web, number)
    refused = await report(web, slow, worker="a", status=409, items=[{"phone": "2"}], done=True)
    assert refused == {"error": "lease_lost"}
    assert await shown(web, number) == before
    assert (await report(web, quick, worker="b", done=True))["done_reason"] == "worker_done"
    assert await report(web, slow, worker="a", status=409, error="late") == {"error": "lease_lost"}
    again = await report(web, quick, worker="b", done=True)
    assert (again["done"], again["added"]) == (True, 0)
    runs = await (await store_of(web)).list_executions(number)
    assert [(run.worker, str(run.status), run.reason) for run in runs] == [
        ("b", "completed", None),
        ("a", "failed", "lease_expired"),
    ]


async def test_a_repeated_key_is_answered_alike_and_counts_once(web: Served) -> None:
    await enqueue(web)
    job = (await pull(web))["job"]
    said: dict[str, Any] = {"items": [{"phone": "1"}, {"phone": "2"}], "cursor": "c", "idempotency_key": "r1"}
    first = await report(web, job, **said)
    before = await shown(web, job["id"])
    assert "idempotent" not in first
    assert await report(web, job, **said) == first | {"idempotent": True}
    assert await shown(web, job["id"]) == before
    assert (before["progress_count"], before["result_count"]) == (2, 2)


async def test_fifty_reports_of_one_key_at_once_have_one_effect(web: Served) -> None:
    await enqueue(web)
    job = (await pull(web))["job"]
    answers = await asyncio.gather(*(report(web, job, items=[{"phone": "1"}], idempotency_key="r1") for _ in range(50)))
    assert [answer.get("idempotent", False) for answer in answers].count(False) == 1
    left = await shown(web, job["id"])
    assert (left["progress_count"], left["result_count"]) == (1, 1)


async def test_a_cancelled_job_tells_its_worker_to_stop(web: Served) -> None:
    number = await enqueue(web)
    job = (await pull(web))["job"]
    assert (await web.ask("POST", f"/api/v1/jobs/{number}/cancel")).status_code == 200
    beat = {"job_id": number, "attempt_id": job["attempt_id"]}
    status, said = await post(web, beat, path="/api/heartbeat")
    assert (status, said["should_stop"]) == (200, True)
    answer = await web.ask("GET", f"/api/job_status?job_id={number}", Role.WORKER)
    assert answer.json() == {"job_id": number, "status": "done", "should_stop": True, "reason": "cancelled"}
    refused = await report(web, job, status=409, items=[{"phone": "1"}], done=True)
    assert refused == {"error": "cancelled", "should_stop": True}
    assert (await shown(web, number))["result_count"] == 0


async def test_a_heartbeat_extends_the_lease_and_nothing_else(web: Served) -> None:
    number = await enqueue(web)
    job = (await pull(web, "?lease_sec=30"))["job"]
    for path, ask in (("/api/heartbeat", "POST"), ("/api/heartbeat.php", "GET")):
        fields = {"job_id": number, "attempt_id": job["attempt_id"], "extend_lease_sec": 300}
        sent: dict[str, Any] = {"json": fields} if ask == "POST" else {"params": fields}
        answer = await web.ask(ask, path, Role.WORKER, **sent)
        left = datetime.fromisoformat(answer.json()["lease_expires_at"]) - await (await store_of(web)).clock()
        assert (answer.status_code, answer.json()["ok"], answer.json()["should_stop"]) == (200, True, False)
        assert timedelta(seconds=290) < left <= timedelta(seconds=300)
    assert (await shown(web, number))["progress_count"] == 0
    status = await web.ask("GET", "/api/job_status.php", Role.WORKER, params={"job_id": number})
    assert status.json() == {"job_id": number, "status": "processing", "should_stop": False, "reason": None}


@SQLITE_ONLY
async def test_the_attempt_id_is_text_that_no_reader_rounds_and_a_number_is_taken_too(web: Served) -> None:
    for _ in range(5):
        await enqueue(web)
        job = (await pull(web))["job"]
        assert isinstance(job["attempt_id"], str)
        number = int(job["attempt_id"])
        assert int(float(number)) == number < 2**53
        await report(web, job | {"attempt_id": number})
        assert (await report(web, job, done=True))["done"]


async def test_without_an_attempt_id_the_worker_is_the_fence_until_it_has_held_the_job_before(web: Served) -> None:
    number = await enqueue(web)
    job = (await pull(web, worker="a"))["job"]
    assert await post(web, {"job_id": number}, worker="b") == (409, {"error": "lease_lost"})
    assert (await post(web, {"job_id": number, "items": None, "error": ""}, worker="a"))[0] == 200
    await report(web, job, worker="a", error="no")
    await hurry(web, "run_at")
    await pull(web, worker="a")
    assert await post(web, {"job_id": number}, worker="a") == (409, {"error": "attempt_id_required"})


async def test_the_same_pull_id_gives_the_same_lease(web: Served) -> None:
    await enqueue(web)
    await enqueue(web)
    first, again = (await pull(web, "?pull_id=p1"))["job"], (await pull(web, "?pull_id=p1"))["job"]
    assert first == again
    assert (await pull(web, "?pull_id=p2"))["job"]["id"] != first["id"]


async def test_a_paused_lane_says_stopped(web: Served) -> None:
    await enqueue(web)
    await web.ask("POST", "/api/v1/lanes/pull/pause")
    assert await pull(web) == {"job": None, "stopped": True}
    assert await pull(web, "?lane=other") == {"job": None}
    await web.ask("POST", "/api/v1/lanes/pull/resume")
    assert (await pull(web, "?task=maps"))["job"] is None
    assert (await pull(web, "?task=leads"))["job"] is not None


async def test_a_job_tells_how_many_tries_its_own_rule_gives_it(web: Served) -> None:
    store = await web.app.store()
    await store.enqueue([NewJob(task="leads", lane="pull", retry=RetrySpec(profile=name)) for name in ("pull", "task", "crawl")])
    assert [(await pull(web))["job"]["max_attempts"] for _ in range(3)] == [5, 3, 4]


async def test_a_token_for_some_lanes_may_pull_and_report_only_there(web: Served) -> None:
    tokens = (await store_of(web)).tokens
    minted = await tokens.mint(NewToken(name="scraper", role=Role.WORKER, lanes=("mine",)))
    headers = {"authorization": f"Bearer {minted.secret}"}
    theirs = await enqueue(web)
    [(mine, _)] = await (await store_of(web)).enqueue([NewJob(task="leads", lane="mine")])
    other = (await pull(web))["job"]
    fields = {"job_id": theirs, "attempt_id": other["attempt_id"]}
    refusals = [
        await web.client.get("/api/pull_job", headers=headers),
        await web.client.post("/api/report_results", headers=headers, json=fields),
        await web.client.post("/api/heartbeat", headers=headers, json=fields),
        await web.client.get("/api/heartbeat", headers=headers, params=fields),
        await web.client.get("/api/job_status", headers=headers, params={"job_id": theirs}),
    ]
    assert [answer.status_code for answer in refusals] == [403] * 5
    assert "mine" in refusals[0].json()["error"]
    got = (await web.client.get("/api/pull_job?lane=mine", headers=headers)).json()["job"]
    body = {"job_id": mine, "attempt_id": got["attempt_id"], "done": True}
    assert (await web.client.post("/api/report_results", headers=headers, json=body)).status_code == 200
    assert (await web.client.get("/api/job_status?job_id=987654", headers=headers)).status_code == 404


@SQLITE_ONLY
async def test_pull_workers_are_among_the_workers(web: Served) -> None:
    await enqueue(web)
    job = (await pull(web, worker="scraper-7"))["job"]
    give_up = asyncio.get_running_loop().time() + 2
    while not (found := [one for one in (await workers(web)) if one["id"] == "scraper-7"]):
        assert asyncio.get_running_loop().time() < give_up
        await asyncio.sleep(0.01)
    assert (found[0]["kind"], found[0]["is_online"], [one["id"] for one in found[0]["jobs"]]) == ("pull", True, [job["id"]])


async def workers(web: Served) -> list[Any]:
    return list((await web.ask("GET", "/api/v1/workers")).json()["workers"])


OURS = "stands for the job that was pulled"
BAD: list[tuple[Any, str]] = [
    ([], "body"),
    ("text", "body"),
    ({}, "missing_job_id"),
    ({"job_id": None}, "missing_job_id"),
    ({"job_id": True}, "job_id"),
    ({"job_id": [1]}, "job_id"),
    ({"job_id": OURS, "attempt_id": "12x"}, "attempt_id"),
    ({"job_id": OURS, "attempt_id": -4}, "attempt_id"),
    ({"job_id": OURS, "attempt_id": 2**63}, "attempt_id"),
    ({"job_id": OURS, "attempt_id": 1.5}, "attempt_id"),
    ({"job_id": OURS, "items": {}}, "items"),
    ({"job_id": OURS, "items": ["x"]}, "items.0"),
    ({"job_id": OURS, "items": [{"phone": "1"}] * 1001}, "items"),
    ({"job_id": OURS, "items": [{"phone": str(n), "x": "y" * 1000} for n in range(999)] + [{"a": "b" * 99_000}]}, "items[999]"),
    ({"job_id": OURS, "items": [{"phone": str(n), "x": "y" * 5000} for n in range(1000)]}, "items"),
    ({"job_id": OURS, "cursor": 7}, "cursor"),
    ({"job_id": OURS, "done": "yes"}, "done"),
    ({"job_id": OURS, "done": 1}, "done"),
    ({"job_id": OURS, "extend_lease_sec": "60"}, "extend_lease_sec"),
    ({"job_id": OURS, "extend_lease_sec": True}, "extend_lease_sec"),
    ({"job_id": OURS, "error": {}}, "error"),
    ({"job_id": OURS, "log": []}, "log"),
    ({"job_id": OURS, "idempotency_key": "k" * 256}, "idempotency_key"),
    ({"job_id": OURS, "itmes": []}, "itmes"),
]


async def test_garbage_is_refused_by_name_and_nothing_is_stored(web: Served) -> None:
    number = await enqueue(web)
    job = (await pull(web))["job"]
    before = await shown(web, number)
    for body, field in BAD:
        is_good = isinstance(body, dict) and body.get("job_id") == OURS
        status, answer = await post(web, {"attempt_id": job["attempt_id"]} | body | {"job_id": number} if is_good else body)
        assert (status, field in answer["error"]) == (400, True), (field, answer)
        assert len(answer["error"]) < 500
    for raw in (b"", b"{", b"\xff\xfe", b'{"job_id": NaN}', b'{"job_id": 1, "job_id": 2}'):
        headers = {"content-type": "application/json", "x-worker-id": "worker"}
        answer = await web.ask("POST", "/api/report_results", Role.WORKER, headers=headers, content=raw)
        assert answer.status_code == 400, raw
    assert await shown(web, number) == before
    assert await (await store_of(web)).items.list(job_id=number) == []


@SQLITE_ONLY
async def test_unknown_jobs_and_attempts_are_told_apart(web: Served) -> None:
    number = await enqueue(web)
    job = (await pull(web))["job"]
    for unknown in (987654321, "987654321", 0, 2**63, "nonsense", "0190163d-8694-739b-aea5-966c26f8ad91"):
        assert await post(web, {"job_id": unknown, "done": True}) == (404, {"error": "job_not_found"})
        assert await post(web, {"job_id": unknown, "attempt_id": "1"}, path="/api/heartbeat") == (404, {"error": "job_not_found"})
        answer = await web.ask("GET", "/api/job_status", Role.WORKER, params={"job_id": unknown})
        assert (answer.status_code, answer.json()) == (404, {"error": "job_not_found"})
    stranger = job | {"attempt_id": "12345"}
    assert await report(web, stranger, status=409, items=[{"phone": "1"}]) == {"error": "lease_lost"}
    beat = {"job_id": number, "attempt_id": "12345"}
    assert await post(web, beat, path="/api/heartbeat") == (409, {"error": "lease_lost"})
    assert (await post(web, {"job_id": number}, path="/api/heartbeat"))[0] == 400
    assert (await web.ask("GET", "/api/job_status", Role.WORKER)).json() == {"error": "missing_job_id"}
    assert (await shown(web, number))["result_count"] == 0


@SQLITE_ONLY
@pytest.mark.parametrize(
    "query",
    ["lease_sec=x", "lease_sec=1.5", "lease_sec=", "lane=", "lane=%00", "wait=-1", "wait=nan", "wait=x", "task=", "nope=1"],
)
async def test_a_bad_question_is_refused_and_takes_nothing(web: Served, query: str) -> None:
    await enqueue(web)
    answer = await pull(web, f"?{query}", status=400)
    assert query.partition("=")[0] in answer["error"]
    assert (await pull(web))["job"] is not None


@SQLITE_ONLY
async def test_a_question_for_headers_only_takes_no_job(web: Served) -> None:
    await enqueue(web)
    assert (await web.ask("HEAD", "/api/pull_job", Role.WORKER)).status_code == 405
    assert (await pull(web))["job"] is not None


@SQLITE_ONLY
async def test_the_payload_goes_out_as_it_was_kept(web: Served) -> None:
    payload = {"big": 2**63, "float": 1e100, "text": 'ä"\\\n', "deep": [{"a": []}], "none": None}
    await enqueue(web, payload=payload)
    answer = await web.ask("GET", "/api/pull_job", Role.WORKER)
    assert json.loads(answer.text)["job"]["payload"] == payload


def with_breaker(url: str) -> Windlass:
    app = Windlass(url, **SETTINGS)

    @app.task(lane="pull", breaker=BreakerSpec("service", threshold=3, open_for=timedelta(hours=1)))
    async def leads(q: int) -> None: ...

    return app


async def test_failed_reports_count_towards_the_breaker_of_a_task_that_the_server_has_code_for(url: str) -> None:
    async with served(with_breaker(url)) as web:
        for number in range(4):
            await enqueue(web)
            if number < 3:
                await report(web, (await pull(web))["job"], error="down")
        assert (await web.app.breakers.get("service")).state == "open"  # type: ignore[union-attr]
        assert await pull(web) == {"job": None}


async def test_failed_reports_count_towards_the_breaker_of_their_task(web: Served, url: str) -> None:
    async with with_breaker(url) as app, app.working():
        pass
    for _ in range(7):
        await enqueue(web)

    async def told(**said: Any) -> str | None:
        await report(web, (await pull(web))["job"], **said)
        found = await web.app.breakers.get("service")
        return None if found is None else found.state.value

    assert [await told(error="down"), await told(error="down"), await told(done=True)] == [None, None, None]
    assert [await told(error="down"), await told(error="down"), await told(error="down")] == [None, None, "open"]
    assert await pull(web) == {"job": None}

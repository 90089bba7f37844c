"""The interval scheduler's document, executed: a program written against it works unchanged."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.web import interval_scheduler as quoted
from tests.web.serving import Served
from windlass.core.access import Role

JOBS = "/api/v1/jobs"
JSON = {"content-type": "application/json"}
pytestmark = pytest.mark.usefixtures("crawled")


async def send(web: Served, method: str, path: str, body: str | None = None) -> Any:
    """Send a text as it stands, as curl would."""
    options = {} if body is None else {"content": body, "headers": JSON}
    return await web.ask(method, path, Role.OPERATOR, **options)


async def create(web: Served, **changes: Any) -> dict[str, Any]:
    body = {**quoted.read(quoted.CREATE_INTERVAL), **changes}
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


async def test_an_interval_job_is_created_as_documented(web: Served) -> None:
    before = datetime.now(UTC)
    made = await create(web)
    quoted.check_columns(made, quoted.JOB_COLUMNS)
    assert made == made | quoted.read(quoted.CREATE_INTERVAL)
    assert (made["status"], made["is_paused"], made["current_retry_count"], made["task"]) == ("scheduled", False, 0, "crawl")
    assert abs(at(made["next_run_at"]) - before - timedelta(minutes=30)) < timedelta(seconds=30)
    assert made["payload"] == {"source_id": "news-site", "source_name": "example.com", "url": "https://example.com"}
    shown = (await send(web, "GET", f"{JOBS}/{made['id']}")).json()
    assert {name: shown[name] for name in made if name != "duplicate"} == {k: v for k, v in made.items() if k != "duplicate"}
    source = (await web.ask("GET", "/api/v1/sources/news-site")).json()
    assert (source["name"], source["url"]) == ("example.com", "https://example.com")


async def test_an_immediate_job_is_created_as_documented(web: Served) -> None:
    answer = await web.ask("POST", JOBS, Role.PRODUCER, json=quoted.read(quoted.CREATE_ONCE))
    made = answer.json()
    assert (answer.status_code, made["status"], made["interval_minutes"]) == (201, "pending", None)
    assert made["schedule_enabled"] is False
    assert (made["max_retries"], made["retry_backoff_seconds"], made["metadata"]) == (3, 60, {})


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_comments_are_not_json(web: Served) -> None:
    for body in (quoted.CREATE_INTERVAL, quoted.CREATE_ONCE):
        answer = await send(web, "POST", JOBS, body)
        assert (answer.status_code, "not strict JSON" in answer.json()["error"]) == (400, True)
    assert (await send(web, "GET", JOBS)).json()["total"] == 0


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_curl_lines_work(web: Served) -> None:
    made = (await send(web, "POST", JOBS, quoted.CURL)).json()
    assert (made["source_id"], made["interval_minutes"]) == ("example.com", 30)
    assert (await send(web, "POST", f"{JOBS}/{made['id']}/pause")).status_code == 200
    assert (await send(web, "GET", "/api/v1/scheduler/metrics")).status_code == 200


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_intervals_come_back_as_they_were_given(web: Served) -> None:
    for interval, length in zip(quoted.INTERVALS, ["30m", "6h", "1d"], strict=True):
        given = json.loads(interval)
        made = await create(web, **given)
        assert (made | given, made["cadence"]) == (made, f"@every {length}")
    same = await create(web, interval_minutes=360, interval_type="minutes")
    assert (same["interval_minutes"], same["interval_type"]) == (360, "minutes")


WHEN: list[tuple[dict[str, Any], str | None]] = [
    ({"interval_minutes": 5}, "scheduled"),
    ({"interval_minutes": 5, "schedule_enabled": True}, "scheduled"),
    ({"interval_minutes": 5, "schedule_enabled": False}, "pending"),
    ({"schedule_time": "0 * * * *"}, "scheduled"),
    ({"schedule_time": "0 * * * *", "schedule_enabled": True}, "scheduled"),
    ({"schedule_time": "0 * * * *", "schedule_enabled": False}, "pending"),
    ({"schedule_enabled": False}, "pending"),
    ({}, "pending"),
    ({"schedule_time": ""}, "pending"),
    ({"schedule_enabled": True}, None),
    ({"interval_type": "hours"}, None),
    ({"start_at": "2030-01-01T00:00:00Z"}, None),
]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_what_recurs_and_what_runs_once(web: Served) -> None:
    for when, status in WHEN:
        answer = await web.ask("POST", JOBS, json={"url": "https://example.com/x", **when})
        assert answer.status_code == (400 if status is None else 201), answer.text
        if status is not None:
            assert (answer.json()["status"], answer.json()["source_id"]) == (status, "example.com"), when


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_the_interval_wins_over_the_schedule_time(web: Served) -> None:
    made = await create(web, schedule_time="0 3 * * *")
    assert (made["cadence"], made["schedule_time"], made["interval_minutes"]) == ("@every 30m", None, 30)


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_day_at_a_specific_time(web: Served) -> None:
    made = await create(web, interval_minutes=1, interval_type="days", start_at="2031-05-01T04:00:00Z", fixed_rate=True)
    assert (made["next_run_at"], made["fixed_rate"]) == ("2031-05-01T04:00:00Z", True)


async def test_control_answers_as_documented(web: Served) -> None:
    path = f"{JOBS}/{(await create(web))['id']}"
    paused = (await send(web, "POST", f"{path}/pause")).json()
    quoted.check_like(paused, quoted.read(quoted.PAUSED))
    assert (paused["status"], paused["is_paused"], paused["next_run_at"]) == ("paused", True, None)
    resumed = (await send(web, "POST", f"{path}/resume")).json()
    quoted.check_like(resumed, quoted.read(quoted.RESUMED))
    assert (resumed["status"], resumed["is_paused"], resumed["paused_at"]) == ("scheduled", False, None)
    cancelled = (await send(web, "POST", f"{path}/cancel")).json()
    quoted.check_like(cancelled, quoted.read(quoted.CANCELLED))
    assert (cancelled["status"], cancelled["next_run_at"]) == ("cancelled", None)


async def test_a_failed_job_is_retried_as_documented(web: Served) -> None:
    path = f"{JOBS}/{(await create(web))['number']}"
    failed = (await send(web, "POST", f"{path}/bury", '{"error": "boom"}')).json()
    assert (failed["status"], failed["error_message"]) == ("failed", "boom")
    retried = (await send(web, "POST", f"{path}/retry")).json()
    quoted.check_like(retried, quoted.read(quoted.RETRIED))
    assert (retried["status"], retried["current_retry_count"]) == ("pending", 0)


async def test_retry_settings_are_adjusted_as_documented(web: Served) -> None:
    made = await create(web)
    edited = (await send(web, "PUT", f"{JOBS}/{made['id']}", quoted.ADJUST_RETRIES)).json()
    assert (edited["max_retries"], edited["retry_backoff_seconds"]) == (5, 120)
    assert (edited["next_run_at"], edited["metadata"]) == (made["next_run_at"], made["metadata"])


async def test_runs_statistics_and_metrics_are_shown_as_documented(web: Served) -> None:
    ran = asyncio.Event()

    @web.app.task(name="crawl")
    async def crawl(source_id: str, source_name: str, url: str) -> dict[str, Any]:
        ran.set()
        return {"at": url, "of": source_name, "by": source_id}

    made = await create(web)
    path = f"{JOBS}/{made['id']}"
    await send(web, "POST", f"{path}/run-now")
    async with web.app.working():
        async with asyncio.timeout(20):
            await ran.wait()
            # The run has ended, and its acknowledgement is on its way.
            while (await send(web, "GET", path)).json()["status"] == "running":  # noqa: ASYNC110 - it is in the database that it shows
                await asyncio.sleep(0.02)
        listed = (await send(web, "GET", f"{path}/executions?limit=50&offset=0")).json()
        quoted.check_like(listed, quoted.read(quoted.EXECUTIONS))
        [run] = listed["executions"]
        quoted.check_columns(run, quoted.EXECUTION_COLUMNS)
        example = {**quoted.read(quoted.EXECUTION), "cpu_time_ms": None, "memory_peak_mb": None}
        alone = (await send(web, "GET", f"/api/v1/executions/{run['id']}")).json()
        quoted.check_like(alone, example)
        assert alone == run
        assert (run["job_id"], run["execution_number"], run["status"], run["retry_attempt"]) == (made["id"], 1, "completed", 0)
        stats = (await send(web, "GET", f"{path}/stats")).json()
        quoted.check_like(stats, quoted.read(quoted.JOB_STATS))
        assert (stats["total_executions"], stats["successful_runs"], stats["success_rate"]) == (1, 1, 1.0)
        await (await web.app.store()).chores.due("fold", timedelta(seconds=1), "somebody")
        metrics = (await send(web, "GET", "/api/v1/scheduler/metrics")).json()
    example = quoted.read(quoted.METRICS)
    quoted.check_like(metrics, example | {"last_metrics_update": None})
    assert metrics["jobs"] == {
        **dict.fromkeys(["pending", "running", "paused", "completed", "failed", "cancelled"], 0),
        "scheduled": 1,
    }
    assert metrics["executions"]["total"] == 1
    shown = (await send(web, "GET", path)).json()
    assert (shown["result"], shown["status"]) == (
        {"at": "https://example.com", "of": "example.com", "by": "news-site"},
        "scheduled",
    )
    assert at(shown["completed_at"]) >= at(shown["started_at"])


REFUSED = [
    ("pause", "pending", "paused"),
    ("resume", "pending", "scheduled"),
    ("retry", "pending", "pending"),
]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_move_that_the_table_does_not_have_names_both_states(web: Served) -> None:
    made = (await web.ask("POST", JOBS, json=quoted.read(quoted.CREATE_ONCE))).json()
    for verb, state, target in REFUSED:
        answer = await send(web, "POST", f"{JOBS}/{made['id']}/{verb}")
        assert answer.status_code == 400
        assert f"{state} → {target}" in answer.json()["error"]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_a_finished_job_cannot_be_cancelled(web: Served) -> None:
    path = f"{JOBS}/{(await create(web))['id']}"
    await send(web, "POST", f"{path}/cancel")
    answer = await send(web, "POST", f"{path}/cancel")
    assert (answer.status_code, "cancelled → cancelled" in answer.json()["error"]) == (400, True)


BAD: list[dict[str, Any]] = [
    {"url": None},
    {"url": "ftp://example.com"},
    {"url": "https://"},
    {"url": "javascript:alert(1)"},
    {"url": "https://a b"},
    {"url": "https://example.com:99999"},
    {"source_name": ""},
    {"source_name": "x" * 256},
    {"source_name": "a\nb"},
    {"source_id": 7},
    {"interval_minutes": 0},
    {"interval_minutes": -1},
    {"interval_minutes": 1.5},
    {"interval_minutes": "30"},
    {"interval_minutes": 10**12},
    {"interval_type": "weeks"},
    {"schedule_time": "nonsense", "interval_minutes": None, "interval_type": None},
    {"max_retries": -1},
    {"retry_backoff_seconds": -1},
    {"retry_backoff_seconds": True},
    {"metadata": []},
    {"metadata": "x"},
    {"priority": 101},
    {"priority": -1},
    {"timezone": "Mars/Olympus"},
    {"start_at": 5},
    {"start_at": "2030-01-01"},
    {"start_at": "2030-01-01T00:00:00"},
    {"status": "running"},
]


@pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
async def test_bad_fields_are_named(web: Served) -> None:
    for changes in BAD:
        answer = await web.ask("POST", JOBS, json={**quoted.read(quoted.CREATE_INTERVAL), **changes})
        assert answer.status_code == 400, changes
        name = next(iter(changes))
        assert answer.json()["error"].startswith((f"{name}:", "cadence:")), answer.text
    assert (await send(web, "GET", JOBS)).json()["total"] == 0

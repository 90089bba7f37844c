"""Explanations over HTTP."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role
from windlass.core.ids import job_uuid
from windlass.core.job import NewJob
from windlass.core.known_task import DeclaredTask
from windlass.core.worker import NewWorker


async def explained(web: Served, path: str) -> dict[str, Any]:
    answer = await web.ask("GET", f"/api/v1/{path}/explain", Role.VIEWER)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_job_by_number_and_by_uuid(web: Served) -> None:
    store = await web.app.store()
    [made] = await store.enqueue([NewJob(task="mail", lane="letters")])
    await web.ask("POST", "/api/v1/lanes/letters/pause", Role.OPERATOR)
    for name in (made.id, job_uuid(made.id)):
        found = await explained(web, f"jobs/{name}")
        assert (found["subject"], found["name"], found["verdict"]) == ("job", str(made.id), "lane_paused")
        assert found["command"] == "windlass lanes resume letters"
        assert re.search(r"by token:\d+:operator", found["sentence"])
        assert (found["position"], found["is_position_exact"], found["failure"]) == (1, True, None)
        [task] = [check for check in found["details"] if check["gate"] == "task"]
        assert task == {"gate": "task", "passed": True, "reason": "task mail is open", "verdict": None, "command": None}


async def test_verdicts_follow_what_operators_and_workers_do(web: Served) -> None:
    store = await web.app.store()
    await store.tasks.declare([DeclaredTask(name="mail", breaker="smtp")])
    [made] = await store.enqueue([NewJob(task="mail")])
    path = f"jobs/{made.id}"
    assert (await explained(web, path))["verdict"] == "no_live_worker"
    await store.workers.register(NewWorker(id="w", host="h", pid=1, version="1", pools='{"*":1}', tasks='["mail"]'))
    assert (await explained(web, path))["verdict"] == "next"
    await web.ask("POST", "/api/v1/breakers/smtp/force-open", Role.OPERATOR, json={"for": "10m"})
    assert (await explained(web, path))["verdict"] == "breaker_open"
    await web.ask("POST", "/api/v1/tasks/mail/pause", Role.OPERATOR)
    assert (await explained(web, path))["verdict"] == "task_paused"
    assert (await explained(web, "tasks/mail"))["verdict"] == "task_paused"
    assert (await explained(web, "lanes/default"))["verdict"] == "task_paused"
    await web.ask("POST", f"/api/v1/jobs/{made.id}/bury", Role.OPERATOR, json={"error": "wrong address"})
    dead = await explained(web, path)
    assert (dead["verdict"], dead["failure"]["error"], dead["failure"]["retry"]) == ("failed", "wrong address", "unlikely")
    [later] = await store.enqueue([NewJob(task="mail", delay=timedelta(hours=1))])
    waiting = await explained(web, f"jobs/{later.id}")
    assert waiting["verdict"] == "waiting_for_its_time"
    assert waiting["estimated_start_at"] is not None


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("jobs/77", "job 77 not found"),
        ("jobs/nonsense", "job 'nonsense' not found"),
        ("lanes/leters", "lane 'leters' not found"),
        ("tasks/mial", "task 'mial' not found"),
    ],
)
async def test_what_is_not_there_is_404_with_the_nearest_name(web: Served, path: str, error: str) -> None:
    await (await web.app.store()).enqueue([NewJob(task="mail", lane="letters")])
    answer = await web.ask("GET", f"/api/v1/{path}/explain", Role.VIEWER)
    assert answer.status_code == 404
    assert error in answer.json()["error"]
    if not path.startswith("jobs"):
        assert "did you mean" in answer.json()["error"]
        assert "force" not in answer.json()["error"]


async def test_every_lane_at_once_cannot_be_explained(web: Served) -> None:
    answer = await web.ask("GET", "/api/v1/lanes/*/explain", Role.VIEWER)
    assert answer.status_code == 400
    assert "lane: must be one lane" in answer.json()["error"]


async def test_who_may_not_read_gets_no_explanation(web: Served) -> None:
    for path in ("jobs/1", "lanes/default", "tasks/mail"):
        assert (await web.ask("GET", f"/api/v1/{path}/explain", None)).status_code == 401
        assert (await web.ask("GET", f"/api/v1/{path}/explain", Role.WORKER)).status_code == 403

"""Pull workers over HTTP: what they get, for how long, and in which words they are refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.serving import Served
from windlass.core.access import Role

BOTH = ("", ".php")


async def enqueue(web: Served, task: str = "leads", **options: Any) -> int:
    answer = await web.ask("POST", "/api/v1/jobs", json={"task": task, "lane": "pull", "payload": {"q": 1}} | options)
    assert answer.status_code == 201, answer.text
    return int(answer.json()["number"])


async def pull(web: Served, query: str = "", worker: str = "w1", status: int = 200) -> Any:
    answer = await web.ask("GET", f"/api/pull_job{query}", Role.WORKER, headers={"x-worker-id": worker})
    assert answer.status_code == status, answer.text
    return answer.json()


async def report(web: Served, job: Any, *, worker: str = "w1", status: int = 200, **said: Any) -> Any:
    body = {"job_id": job["id"], "attempt_id": job["attempt_id"]} | said
    answer = await web.ask("POST", "/api/report_results", Role.WORKER, headers={"x-worker-id": worker}, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize("ending", BOTH)
async def test_a_job_is_pulled_reported_on_and_done(web: Served, ending: str) -> None:
    number = await enqueue(web, target_count=5)
    got = await pull(web, f"{ending}?lease_sec=90")
    job = got["job"]
    assert (job["id"], job["task"], job["payload"], job["attempts"], job["max_attempts"]) == (number, "leads", {"q": 1}, 1, 5)
    assert (job["last_cursor"], job["target_count"], job["progress_count"], job["result_count"]) == (None, 5, 0, 0)
    assert (got["lease_sec"], job["attempt_id"]) == (90, str(int(job["attempt_id"])))
    said = await report(web, job, items=[{"phone": "1"}, {"phone": "1"}], cursor="page 2")
    assert (said["ok"], said["added"], said["duplicates"], said["done"]) == (True, 1, 1, False)
    done = await report(web, job, done=True)
    assert (done["done"], done["done_reason"], done["lease_expires_at"]) == (True, "no_more_results", None)
    assert await pull(web, ending) == {"job": None}

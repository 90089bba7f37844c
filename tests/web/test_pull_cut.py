"""Connections that break after the request and before the answer: nothing is lost, nothing counts twice."""

from __future__ import annotations

import asyncio
import os
from itertools import count
from random import Random
from typing import Any

import httpx2

from tests.web.cutting_proxy import cutting_proxy
from tests.web.serving import listening
from windlass import Windlass
from windlass.core.job import JobState, NewJob
from windlass.store import open_store

CUTS = 200 if os.environ.get("WINDLASS_TEST_LONG") else 20
JOBS = CUTS // 3
ITEMS = 3
WORKERS = 4


class CarefulWorker:
    """Asks again, under the same name, until it is answered."""

    def __init__(self, name: str, client: httpx2.AsyncClient) -> None:
        self._client = client
        self._headers = {"x-worker-id": name, "x-internal-secret": "shared-worker-secret"}
        self._names = count()

    async def _ask(self, method: str, path: str, **options: Any) -> Any:
        for _ in range(200):
            try:
                answer = await self._client.request(method, path, headers=self._headers, **options)
            except httpx2.TransportError:
                continue
            assert answer.status_code == 200, answer.text
            return answer.json()
        raise AssertionError("never answered")

    async def run(self) -> int:
        """Work until there is nothing left; says how many jobs were done."""
        done = 0
        while (job := (await self._ask("GET", "/api/pull_job", params={"pull_id": f"p{next(self._names)}"}))["job"]) is not None:
            for place in range(ITEMS):
                body = {"job_id": job["id"], "attempt_id": job["attempt_id"], "idempotency_key": f"{place}"}
                items = [{"phone": f"{job['id'] * 100 + place}"}]
                await self._ask("POST", "/api/report_results", json=body | {"items": items, "done": place == ITEMS - 1})
            done += 1
        return done


async def test_answers_that_never_arrive_lose_nothing_and_count_nothing_twice(url: str) -> None:
    chance, cuts = Random(4), count()
    app = Windlass(url, worker_secret="shared-worker-secret")

    def is_cut() -> bool:
        return chance.random() < 0.45 and next(cuts) >= 0

    store = open_store(url, rng=Random(1))
    jobs = await store.enqueue([NewJob(task="leads", lane="pull", max_attempts=1) for _ in range(JOBS)])
    with listening(app) as port:
        async with cutting_proxy(port, is_cut) as proxy, httpx2.AsyncClient(base_url=f"http://127.0.0.1:{proxy}") as client:
            done = await asyncio.gather(*(CarefulWorker(f"w{place}", client).run() for place in range(WORKERS)))
    assert next(cuts) >= CUTS
    assert sum(done) == JOBS
    for one in jobs:
        job = await store.get(one.id)
        assert (job.state, job.attempt, job.progress_count, job.result_count) == (JobState.COMPLETED, 1, ITEMS, ITEMS)
        assert len(await store.list_executions(one.id)) == 1
        assert len(await store.items.list(job_id=one.id)) == ITEMS
    await store.aclose()

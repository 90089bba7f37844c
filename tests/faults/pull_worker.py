"""A process that pulls jobs over HTTP, works on them and reports, and asks again when an answer is lost."""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from random import Random
from typing import Any

import httpx2

from tests.faults.jobs_app import ledger, watch_process

LEASE_S = 30
_ANSWER_S = 15.0
_PAUSE_S = 0.2


class PullWorker:
    """Holds one job at a time."""

    def __init__(self, rng: Random, urls: list[str], secret: str) -> None:
        self._rng = rng
        self._urls = urls
        self._name = f"pull-{os.getpid()}"
        headers = {"x-worker-id": self._name, "x-internal-secret": secret}
        self._client = httpx2.Client(timeout=_ANSWER_S, headers=headers)

    def run(self) -> None:
        for number in itertools.count():
            pulled = self._ask("GET", "/api/pull_job", params={"lease_sec": LEASE_S, "wait": 2, "pull_id": f"p{number}"})
            if pulled is None or not pulled.get("job"):
                time.sleep(_PAUSE_S)
                continue
            self._work(pulled["job"])

    def _work(self, job: dict[str, Any]) -> None:
        token = job["attempt_id"]
        ledger.write("start", job["id"], token, job["execution"], job["attempts"], "pulled", os.getppid())
        time.sleep(self._rng.uniform(0.0, 0.2))
        is_error = self._rng.random() < 0.1
        ledger.write("end", job["id"], token, "raised" if is_error else "ok")
        report: dict[str, Any] = {"job_id": job["id"], "attempt_id": token, "idempotency_key": token}
        report |= {"error": "by chance"} if is_error else {"done": True, "items": [{"phone": str(job["id"])}]}
        self._ask("POST", "/api/report_results", json=report)

    def _ask(self, method: str, path: str, **options: Any) -> dict[str, Any] | None:
        """Ask until there is an answer; None is a refusal."""
        for url in itertools.cycle(self._urls):
            try:
                answer = self._client.request(method, url + path, **options)
            except httpx2.HTTPError:
                time.sleep(_PAUSE_S)
                continue
            if answer.status_code < 300:
                found: dict[str, Any] = answer.json()
                return found
            if answer.status_code < 500:
                ledger.write("answer", answer.status_code, path)
                return None
            time.sleep(_PAUSE_S)
        return None


def main() -> None:
    seed, secret, *urls = sys.argv[1:]
    ledger.open()
    ledger.write("opened", os.getppid())
    threading.Thread(target=watch_process, daemon=True).start()
    PullWorker(Random(seed), urls, secret).run()


if __name__ == "__main__":
    main()

"""A pull worker in nothing but the standard library: pulls a search, reports what it finds page by page, goes on where it was."""

from __future__ import annotations

import json
import os
import time
import uuid
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

URL, SECRET = os.environ["LEADS_URL"], os.environ["LEADS_SECRET"]
HEADERS = {"content-type": "application/json", "x-worker-id": f"leads-{os.getpid()}", "x-internal-secret": SECRET}


class Lost(Exception):
    """The job is no longer ours: it was cancelled, or our lease ran out and another worker has it."""


def ask(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """Send a request; while there is no answer, the same one again: pull_id and idempotency_key make it count once."""
    data = None if body is None else json.dumps(body).encode()
    for wait in (0.1, 0.5, 1, 2, 5, 10, 30):
        try:
            with urlopen(Request(URL + path, data, HEADERS), timeout=60) as answer:
                return json.load(answer)
        except HTTPError as error:
            if error.code == 409:
                raise Lost(json.load(error)["error"]) from None
            if error.code < 500:
                raise SystemExit(f"{path}: {error.code} {error.read().decode()}") from None
        except (URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(wait)
    raise SystemExit(f"{path}: no answer from {URL}")


def search(city: str, page: int) -> list[dict[str, str]]:
    """Stand in for a real directory: three leads a page, the last of each page on the next one once more."""
    places = range(page * 2, page * 2 + 3) if page < 4 else range(0)
    return [{"name": f"Shop {place} in {city}", "phone": f"+49 {len(city)}{place:03}"} for place in places]


def work(job: dict[str, Any]) -> None:
    """Search until the job's target is reached or there is nothing more; a later worker goes on at the cursor."""
    page = int(job["last_cursor"] or 0)
    while True:
        found = search(job["payload"]["city"], page)
        page += 1
        report = {
            "job_id": job["id"],
            "attempt_id": job["attempt_id"],
            "items": found,
            "cursor": str(page),
            "done": not found,
            "idempotency_key": str(uuid.uuid4()),
        }
        answer = ask("/api/report_results", report)
        print(f"{job['payload']['city']}: {answer['added']} new, {answer['duplicates']} known", flush=True)
        if answer["done"]:
            return


def main() -> None:
    """Work until nothing comes for a second; a worker that stays would wait 30 seconds, and for ever."""
    while True:
        job = ask(f"/api/pull_job?wait=1&pull_id={uuid.uuid4()}")["job"]
        if job is None:
            return
        try:
            work(job)
        except Lost as lost:
            print(f"job {job['id']}: {lost}", flush=True)


if __name__ == "__main__":
    main()

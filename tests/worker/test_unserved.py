"""Which waiting jobs no worker would ever run."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from windlass.core.job import Count, JobState
from windlass.core.unserved import UnservedJobs, find_unserved
from windlass.core.worker import WorkerRecord

NOW = datetime(2026, 1, 15, tzinfo=UTC)
MAIL = Count("mail", "fast", JobState.PENDING, None, 3)


def worker(pools: str, tasks: str, *, kind: str = "worker", is_online: bool = True) -> WorkerRecord:
    return WorkerRecord("w", kind, "host", 1, "1", pools, tasks, 0, NOW, NOW, None, is_online)


def test_jobs_that_a_worker_takes_are_served() -> None:
    assert list(find_unserved([MAIL], [worker('{"*": 2}', '["mail"]')])) == []
    assert list(find_unserved([MAIL], [worker('{"fast": 2}', '["other", "mail"]')])) == []


def test_a_task_that_no_living_worker_has_is_not_served() -> None:
    gone = worker('{"*": 2}', '["mail"]', is_online=False)
    assert list(find_unserved([MAIL], [gone, worker('{"*": 2}', '["other"]')])) == [
        UnservedJobs("mail", "fast", 3, has_code=False)
    ]


def test_the_worker_with_the_code_must_serve_the_lane_too() -> None:
    apart = [worker('{"slow": 1}', '["mail"]'), worker('{"*": 2}', '["other"]')]
    assert list(find_unserved([MAIL], apart)) == [UnservedJobs("mail", "fast", 3, has_code=True)]


def test_workers_that_were_told_to_claim_nothing_serve_nothing() -> None:
    paused = replace(worker('{"*": 2}', '["mail"]'), paused_at=NOW)
    [found] = find_unserved([MAIL], [paused])
    assert found.is_paused
    assert "every worker for it was told to claim nothing; `windlass workers resume`" in str(found)
    assert list(find_unserved([MAIL], [paused, worker('{"*": 2}', '["mail"]')])) == []


def test_what_pull_workers_take_is_not_known() -> None:
    assert list(find_unserved([MAIL], [worker("{}", "[]", kind="pull")])) == []
    assert list(find_unserved([MAIL._replace(lane="pull")], [])) == []


def test_only_jobs_that_wait_are_looked_at() -> None:
    others = [MAIL._replace(state=JobState.RUNNING), MAIL._replace(state=JobState.SCHEDULED), MAIL._replace(jobs=0)]
    assert list(find_unserved(others, [])) == []

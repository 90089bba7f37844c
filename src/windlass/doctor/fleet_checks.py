"""Whether the work is done: workers, upkeep, and jobs that no process moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.core.chore import Chore
from windlass.core.durations import in_words
from windlass.core.finding import Finding, ok, problem, warning
from windlass.core.job import JobState
from windlass.core.unserved import find_unserved
from windlass.core.worker import PULLING, WorkerRecord
from windlass.doctor.case import DoctorCase
from windlass.doctor.sizes import counted

_WAITING = frozenset({JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING})
_SILENT = timedelta(minutes=2)
_LOST_LATELY = timedelta(hours=1)
_LATE = timedelta(minutes=1)
_TOO_LATE = timedelta(minutes=10)
_MOST_LEASES = 10_000
_UPKEEP = "start `windlass worker` or `windlass upkeep`"


async def check_workers(case: DoctorCase) -> Finding:
    """Look which processes run jobs."""
    workers, now = await case.store.workers.list(), await case.store.clock()
    alive = [worker for worker in workers if worker.is_online]
    waiting = await _waiting(case)
    if not alive and waiting:
        return problem(
            "workers", f"no worker is alive, and {counted(waiting, 'job waits', 'jobs wait')}", "windlass worker MODULE:APP"
        )
    lost = [one for one in workers if _is_lost(one, now)]
    message = f"{counted(len(alive), 'worker is', 'workers are')} alive" if alive else "no worker is alive, and nothing waits"
    if lost:
        gone = f"{counted(len(lost), 'worker', 'workers')} ended without reporting it within the last hour"
        details = [f"{one.id}, last seen {in_words(_whole(now - one.seen_at))} ago" for one in lost[:10]]
        return warning("workers", f"{message}; {gone}", "look into the log of its machine: it was killed, or froze", *details)
    return ok("workers", message)


def _is_lost(worker: WorkerRecord, now: datetime) -> bool:
    is_silent = worker.stopped_at is None and not worker.is_online and worker.kind != PULLING
    return is_silent and now - worker.seen_at < _LOST_LATELY


async def _waiting(case: DoctorCase) -> int:
    return sum(max(count.jobs, 0) for count in await case.store.count_jobs() if count.state in _WAITING)


async def check_upkeep(case: DoctorCase) -> Finding:
    """Look when chores were done last."""
    chores, now = await case.store.chores.list(), await case.store.clock()
    last = max((chore.last_run_at for chore in chores if chore.last_run_at is not None), default=None)
    if last is not None and now - last < _SILENT:
        return ok("upkeep", f"the last chore was done {in_words(_whole(now - last))} ago")
    message = "upkeep never ran" if last is None else f"upkeep has not run for {in_words(_whole(now - last))}"
    if not await _waiting(case):
        return ok("upkeep", f"{message}, and nothing waits")
    return problem("upkeep", f"{message}: nothing becomes due, and lost jobs are not taken back", _UPKEEP)


async def check_chores(case: DoctorCase) -> Finding:
    """Look for chores that are paused or fail."""
    chores = await case.store.chores.list()
    paused = [chore for chore in chores if chore.paused_at is not None]
    failing = [chore for chore in chores if chore.last_error is not None]
    if paused:
        message = f"{counted(len(paused), 'chore is', 'chores are')} paused ({_named(paused)})"
        return warning("chores", message, f"windlass chores resume {paused[0].name}")
    if failing:
        message = f"{counted(len(failing), 'chore', 'chores')} failed the last time ({_named(failing)})"
        return warning("chores", message, "windlass chores", *(f"{chore.name}: {chore.last_error}" for chore in failing))
    return ok("chores", "none is paused, none failed the last time")


def _named(chores: Sequence[Chore]) -> str:
    return ", ".join(chore.name for chore in chores)


async def check_served(case: DoctorCase) -> Finding:
    """Look for waiting jobs that no running worker would take."""
    workers = await case.store.workers.list()
    if not any(worker.is_online for worker in workers):
        return ok("served", "no worker is alive whose lanes and tasks could be compared")
    found = list(find_unserved(await case.store.count_jobs(), workers))
    if not found:
        return ok("served", "every lane and task with waiting jobs has a worker")
    most = max(found, key=lambda one: one.jobs)
    lane = f"windlass worker MODULE:APP --pools '{most.lane}=2,*=5'"
    remedy = lane if most.has_code else f"start a worker whose application has {most.task!r}; `windlass tasks` lists the names"
    jobs = sum(one.jobs for one in found)
    message = f"{counted(jobs, 'job waits', 'jobs wait')} where no live worker would run {'it' if jobs == 1 else 'them'}"
    return problem("served", message, remedy, *map(str, found[:10]))


async def check_overdue(case: DoctorCase) -> Finding:
    """Look for what upkeep should have moved: due jobs, due templates, leases that have ended."""
    found, now = await case.ask("doctor_overdue", most=_MOST_LEASES), await case.store.clock()
    late = [(kind, job_id, task, now - at) for kind, job_id, task, at in found if now - at > _LATE]
    if not late:
        return ok("overdue", "no due job and no lost lease waits for upkeep")
    kind, job_id, task, length = max(late, key=lambda one: one[3])
    words = {
        "scheduled": "was due and is not yet pending",
        "template": "was due and has not enqueued its job",
        "lease": "has lost its worker and was not taken back",
    }
    details = [f"job {one} ({of}) {words[which]}: {in_words(_whole(since))}" for which, one, of, since in late]
    message = f"job {job_id} ({task}) {words[kind]} for {in_words(_whole(length))}"
    return (problem if length > _TOO_LATE else warning)(
        "overdue", message, f"{_UPKEEP}; `windlass chores` shows what is paused", *details
    )


def _whole(length: timedelta) -> timedelta:
    return timedelta(seconds=round(max(length, timedelta()).total_seconds()))

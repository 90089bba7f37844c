"""A worker killed anywhere between claim and finish costs time, never a job and never a second ending."""

from __future__ import annotations

import asyncio
import signal
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from tests.crash import doomed_worker, worker
from tests.crash.conftest import is_long
from tests.crash.processes import Fleet, Process, until
from tests.crash.saboteur import Moment
from tests.store.builders import all_jobs
from windlass.core.cadence import Every, Recurrence
from windlass.core.job import CLOSED, Execution, Job, JobState, NewJob
from windlass.store import Store

LEASE_S = 1.0
# What docs/reliability.md promises. Thirty-two processes share the machine here, so that a quiet one is well below it.
LONGEST_RECOVERY = timedelta(seconds=LEASE_S + 5)
ROUNDS = 10 if is_long() else 1

Runs = tuple[str, ...]
"""The runs a job leaves, each as status/reason@attempt."""

DONE: Runs = ("completed@1",)
LOST: Runs = ("failed/lease_expired@1", "completed@2")
FAILED: Runs = ("failed/error@1", "completed@2")
RELEASED: Runs = ("cancelled/released@1", "completed@1")
CANCELLED: Runs = ("cancelled/cancelled@1",)
STOPPED: Runs = ("cancelled/stopped@1", "completed@1")
ANY: Runs = ()
"""How many runs are lost before the point is reached depends on who reclaims first."""


class Point(NamedTuple):
    """A place to die and what it must leave of each of the three jobs."""

    name: str
    script: str
    place: str
    moment: Moment
    occurrence: int
    left: tuple[Runs, Runs, Runs]

    @property
    def lane(self) -> str:
        return self.name.replace(" ", "-")


POINTS = (
    Point("before the claim is sent", "run", "claim", Moment.BEFORE, 1, (DONE, DONE, DONE)),
    Point("claim not committed", "run", "claim", Moment.EXECUTED, 1, (DONE, DONE, DONE)),
    Point("claim committed, answer lost", "run", "claim", Moment.COMMITTED, 1, (DONE, DONE, DONE)),
    Point("claimed, start not reported", "run", "renew", Moment.BEFORE, 1, (DONE, DONE, DONE)),
    Point("start report not committed", "run", "renew", Moment.EXECUTED, 1, (DONE, DONE, DONE)),
    Point("start reported, answer lost", "run", "renew", Moment.COMMITTED, 1, (LOST, DONE, DONE)),
    Point("second start reported", "run", "renew", Moment.COMMITTED, 2, (DONE, LOST, DONE)),
    Point("in the handler before progress", "run", "progress", Moment.BEFORE, 2, (DONE, LOST, DONE)),
    Point("progress not committed", "run", "progress", Moment.EXECUTED, 2, (DONE, LOST, DONE)),
    Point("in the handler after progress", "run", "progress", Moment.COMMITTED, 2, (DONE, LOST, DONE)),
    Point("handler done, nothing decided", "run", "handled", Moment.BEFORE, 2, (DONE, LOST, DONE)),
    Point("decided, finish not called", "run", "decided", Moment.BEFORE, 2, (DONE, LOST, DONE)),
    Point("between two finishes of a batch", "run", "finish", Moment.BEFORE, 2, (DONE, LOST, DONE)),
    Point("finish not committed", "run", "finish", Moment.EXECUTED, 2, (DONE, LOST, DONE)),
    Point("finish committed, answer lost", "run", "finish", Moment.COMMITTED, 2, (DONE, DONE, DONE)),
    Point("batched finish not sent", "batch", "finish", Moment.BEFORE, 1, (LOST, LOST, LOST)),
    Point("batched finish not committed", "batch", "finish", Moment.EXECUTED, 1, (LOST, LOST, LOST)),
    Point("batched finish committed", "batch", "finish", Moment.COMMITTED, 1, (DONE, DONE, DONE)),
    Point("failure not committed", "fail", "finish", Moment.EXECUTED, 1, (LOST, DONE, DONE)),
    Point("failure committed, answer lost", "fail", "finish", Moment.COMMITTED, 1, (FAILED, DONE, DONE)),
    Point("release not sent", "release", "finish", Moment.BEFORE, 2, (DONE, LOST, DONE)),
    Point("release not committed", "release", "finish", Moment.EXECUTED, 2, (DONE, LOST, DONE)),
    Point("release committed, answer lost", "release", "finish", Moment.COMMITTED, 2, (DONE, RELEASED, DONE)),
    Point("cancel seen", "cancel", "stop seen", Moment.BEFORE, 1, (CANCELLED, DONE, DONE)),
    Point("stopped report not committed", "cancel", "stop", Moment.EXECUTED, 1, (CANCELLED, DONE, DONE)),
    Point("stopped report committed", "cancel", "stop", Moment.COMMITTED, 1, (CANCELLED, DONE, DONE)),
    Point("stop request seen", "stop", "stop seen", Moment.BEFORE, 1, (STOPPED, DONE, DONE)),
    Point("stopped run not committed", "stop", "finish", Moment.EXECUTED, 1, (STOPPED, DONE, DONE)),
    Point("stopped run committed", "stop", "finish", Moment.COMMITTED, 1, (STOPPED, DONE, DONE)),
    Point("reclaim not committed", "reclaim", "reclaim", Moment.EXECUTED, 1, (ANY, ANY, ANY)),
)


@pytest.mark.parametrize("turn", range(ROUNDS))
async def test_worker_killed_at_any_point_leaves_every_job_to_end_once(store: Store, url: str, fleet: Fleet, turn: int) -> None:
    healthy = [fleet.start(name, worker, worker.Options(url, name, LEASE_S, 32, [])) for name in ("first", "second")]
    jobs = {point: await enqueue(store, point) for point in POINTS}
    doomed = {point: fleet.start(point.name, doomed_worker, options(url, point)) for point in POINTS}
    await fleet.go(*healthy, *doomed.values())
    killed = await asyncio.gather(*(see_die(doomed[point], point, healthy) for point in POINTS))
    await until(lambda: all_closed(store), f"every job to end: {turn=}")
    problems: list[str] = []
    recoveries: list[timedelta] = []
    for point, killed_at in zip(POINTS, killed, strict=True):
        for place, job_id in enumerate(jobs[point]):
            job = await store.get(job_id)
            problems += wrong_with(job, await store.list_executions(job_id), point.left[place], f"{point.name}, job {place + 1}")
            assert job.closed_at is not None
            recoveries.append(job.closed_at - killed_at)
            if recoveries[-1] > LONGEST_RECOVERY:
                problems.append(f"{point.name}, job {place + 1}: recovered only after {recoveries[-1]}")
    assert not problems, "\n".join(problems)
    ran = [job_id for process in healthy for job_id in process.said("ran")]
    assert len(ran) == len(set(ran)), "a job ran twice after its worker was killed once"
    late = sorted(recovery.total_seconds() for recovery in recoveries if recovery > timedelta())
    print(f"recovery of {len(late)} jobs: median {late[len(late) // 2]:.2f} s, longest {late[-1]:.2f} s")


async def enqueue(store: Store, point: Point) -> list[int]:
    # A stopped run ends only a recurring job's run; one completed run ends the job.
    recurrence = Recurrence(cadence=Every(timedelta(seconds=1)), max_runs=1) if point.script == "stop" else None
    made = [NewJob(task="work", lane=point.lane, recurrence=recurrence, delay=timedelta(), max_attempts=100)] * doomed_worker.JOBS
    return [enqueued.id for enqueued in await store.enqueue(made)]


def options(url: str, point: Point) -> doomed_worker.Options:
    return doomed_worker.Options(url, point.lane, LEASE_S, point.script, point.place, point.moment, point.occurrence)


async def see_die(process: Process, point: Point, healthy: list[Process]) -> datetime:
    """Wait for the death, and only then let the healthy workers into the lane."""
    code = await process.end()
    assert code == -signal.SIGKILL, f"{point.name}: {process.ending()}"
    for one in healthy:
        one.tell(f"open {point.lane}")
    [died_us] = process.said("dying")
    return datetime.fromtimestamp(died_us / 1e6, UTC)


async def all_closed(store: Store) -> bool:
    open_jobs = [count for count in await store.count_jobs() if count.state not in CLOSED]
    # A cancelled job is over once nobody holds its lease.
    return not open_jobs and not any(job.token for job in await all_jobs(store, JobState.CANCELLED))


def wrong_with(job: Job, runs: list[Execution], left: Runs, where: str) -> list[str]:
    problems: list[str] = []
    found = tuple(described(run) for run in reversed(runs))
    if left == ANY:
        left = (*(f"failed/lease_expired@{attempt}" for attempt in range(1, len(runs))), f"completed@{len(runs)}")
    if found != left:
        problems.append(f"{where}: left {found}, not {left}")
    if [run.number for run in reversed(runs)] != list(range(1, job.executions + 1)):
        problems.append(f"{where}: {job.executions=} but its runs are numbered {[run.number for run in runs]}")
    expected = JobState.CANCELLED if left == CANCELLED else JobState.COMPLETED
    if job.state is not expected or job.token is not None:
        problems.append(f"{where}: is {job.state} with token {job.token}, not {expected}")
    return problems


def described(run: Execution) -> str:
    return f"{run.status}{'/' + run.reason if run.reason else ''}@{run.attempt}"

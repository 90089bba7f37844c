"""The registry of processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME, MAX_TEXT
from windlass.core.worker import MAX_SEEN, PULLING, Neighbour, NewWorker, StartedJob, WorkerRecord
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import Row, Shape

MAX_WORKERS = 1000
OFFLINE_AFTER = timedelta(minutes=1)
GONE_FOR = timedelta(days=7)
MAX_STARTED = 10_000

SHAPES = {"list_workers": Shape.of(WorkerRecord), "list_started": Shape((3,))}


def register(worker: NewWorker) -> Call[bool]:
    """Enter a process; one that registers again starts anew."""
    params = {
        "worker": worker.id,
        "kind": worker.kind,
        "host": worker.host,
        "pid": worker.pid,
        "program": worker.version,
        "pools": worker.pools,
        "tasks": worker.tasks,
        "place": worker.process and worker.process.place,
        "process_start": worker.process and worker.process.start,
    }
    return single("register_worker", params, bool, is_engine=True)


def seen(worker: str, running: int, *, loop_blocks: int = 0) -> Call[bool]:
    """Note a heartbeat; False when nobody of that name is registered and not stopped."""
    check_range("running", running, 0, 2**31 - 1)
    check_range("loop_blocks", loop_blocks, 0, 2**31 - 1)
    params = {"worker": worker, "running": running, "loop_blocks": loop_blocks}
    return single("see_worker", params, bool, is_engine=True)


def pulled(seen: Mapping[str, str]) -> Call[int]:
    """Note pull workers as seen; a process that registered under the same name is left alone."""
    check_range("workers", len(seen), 1, MAX_SEEN)
    for worker, host in seen.items():
        check_text("worker", worker, MAX_NAME)
        check_text("host", host, MAX_NAME)
    # In the order of their names: two servers that note the same workers would wait for each other.
    batch = batches.array(
        f'{{"id":{batches.quote(worker)},"host":{batches.quote(host)}}}' for worker, host in sorted(seen.items())
    )
    return single("see_pull_workers", {"batch": batch}, len)


def stopped(worker: str) -> Call[bool]:
    """Note that a process has ended in order."""
    return single("stop_worker", {"worker": worker}, bool, is_engine=True)


def list_neighbours(place: str) -> Call[list[Neighbour]]:
    """List the processes of one machine that are registered and have not stopped."""
    check_text("place", place, MAX_TEXT)
    params = {"place": place, "limit": MAX_WORKERS}
    return single("list_neighbours", params, lambda found: [Neighbour._make(row) for row in found], is_read=True)


def lose(place: str, gone: Sequence[Neighbour]) -> Call[list[str]]:
    """Note that processes are gone without a word; returns the workers that were not known to have stopped."""
    check_range("workers", len(gone), 1, MAX_WORKERS)
    batch = batches.array(f'{{"id":{batches.quote(one.id)},"pid":{one.pid},"process_start":{one.process_start}}}' for one in gone)
    params = {"place": place, "batch": batch}
    return single("lose_workers", params, lambda found: sorted(row[0] for row in found))


def list_workers(*, offline_after: timedelta = OFFLINE_AFTER, limit: int = MAX_WORKERS) -> Call[list[WorkerRecord]]:
    """Read processes, last seen first, with what they run."""
    check_wait("offline_after", offline_after, least=timedelta())
    check_range("limit", limit, 1, MAX_WORKERS)

    def steps(_: Means) -> Steps[list[WorkerRecord]]:
        found = yield Step("list_workers", {"offline_after": offline_after, "limit": limit})
        started = _by_worker((yield Step("list_started", {"limit": MAX_STARTED})))
        return [_worker(row, tuple(started[row[0]])) for row in found]

    return Call(steps, is_read=True)


def _worker(row: Row, jobs: tuple[StartedJob, ...]) -> WorkerRecord:
    worker = WorkerRecord(*(*row, jobs))
    # A pull worker has no heartbeat that would tell it.
    return replace(worker, running=len(jobs)) if worker.kind == PULLING else worker


def _by_worker(rows: Sequence[Row]) -> defaultdict[str, list[StartedJob]]:
    started: defaultdict[str, list[StartedJob]] = defaultdict(list)
    for worker, *job in rows:
        started[worker].append(StartedJob._make(job))
    return started


def prune(gone_for: timedelta = GONE_FOR, *, limit: int = 1000) -> Call[int]:
    """Forget processes that were not seen for so long; returns how many."""
    check_wait("gone_for", gone_for, least=timedelta())
    check_range("limit", limit, 1, 10_000)
    return single("prune_workers", {"gone_for": gone_for, "limit": limit}, lambda found: found[0][0])

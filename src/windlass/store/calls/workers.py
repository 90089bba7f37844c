"""The registry of processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from windlass.core.audit import Deed
from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME, MAX_TEXT
from windlass.core.topic import Topic
from windlass.core.worker import MAX_SEEN, PULLING, LeaseLook, Neighbour, NewWorker, SeenWorker, StartedJob, WorkerRecord
from windlass.errors import InvalidInput, WorkerNotFound
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, known, single
from windlass.store.rows import SHAPES, Row, Shape

MAX_WORKERS = 1000
OFFLINE_AFTER = timedelta(minutes=1)
GONE_FOR = timedelta(days=7)
MAX_STARTED = 10_000
MOST_VERSIONS = 1000
_MOST = 2**31 - 1

_WORKER = Shape.of(WorkerRecord)
SHAPES |= {
    "list_workers": _WORKER,
    "get_worker": _WORKER,
    "see_worker": Shape((1,), ()),
    "list_started": Shape((3,)),
    "look_at_leases": Shape((0,), (1,)),
}


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
        "app_version": worker.app_version,
    }

    def steps(_: Means) -> Steps[bool]:
        is_entered = bool((yield Step("register_worker", params)))
        version = {"app_version": worker.app_version}
        if worker.app_version is not None and (yield Step("record_version", version)):
            yield Step("forget_versions", {"keep": MOST_VERSIONS})
        return is_entered

    return Call(steps, is_engine=True)


def seen(
    worker: str, running: int, *, loop_blocks: int = 0, cpu_percent: int | None = None, memory_mb: int | None = None
) -> Call[SeenWorker | None]:
    """Note a heartbeat and return what is wanted of the worker; None when no worker of that name is registered and not stopped.

    Without `cpu_percent` and `memory_mb` those of the heartbeat before stay.
    """
    check_range("running", running, 0, _MOST)
    check_range("loop_blocks", loop_blocks, 0, _MOST)
    params = {
        "worker": worker,
        "running": running,
        "loop_blocks": loop_blocks,
        "cpu_percent": cpu_percent,
        "memory_mb": memory_mb,
    }
    return single("see_worker", params, lambda found: SeenWorker(found[0][1] is not None) if found else None, is_engine=True)


def pause(worker: str) -> Call[WorkerRecord]:
    """Let a worker claim nothing more; what it has claimed is run. Raises WorkerNotFound."""
    return _switch(worker, "pause")


def resume(worker: str) -> Call[WorkerRecord]:
    """Let a worker claim again. Raises WorkerNotFound."""
    return _switch(worker, "resume")


def _switch(worker: str, action: str) -> Call[WorkerRecord]:
    check_text("worker", worker, MAX_NAME)

    def steps(means: Means) -> Steps[WorkerRecord]:
        params = {"worker": worker} | ({"principal": means.principal} if action == "pause" else {})
        yield Step(f"{action}_worker", params)
        found = yield Step("get_worker", {"worker": worker, "offline_after": OFFLINE_AFTER})
        record = WorkerRecord(*found[0]) if found else None
        if record is None or record.stopped_at is not None:
            raise WorkerNotFound(worker)
        if record.kind == PULLING:
            raise InvalidInput("worker", worker, "it asks for jobs over HTTP; stop its program, or revoke its token")
        return record

    deed = Deed(f"{action} worker", f"worker:{worker}")
    return Call(steps, wakes=lambda _: {Topic.CONTROL}, deed=lambda _: deed)


def pulled(seen: Mapping[str, str]) -> Call[int]:
    """Note pull workers as seen, by name with their address; a process that registered under the same name is left alone."""
    if not seen:
        return known(0)
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


def look_at_leases(place: str | None) -> Call[LeaseLook]:
    """Read whether any lease is held, and which processes of one machine are registered and have not stopped."""
    if place is not None:
        check_text("place", place, MAX_TEXT)

    def decode(found: Sequence[Row]) -> LeaseLook:
        neighbours = tuple(Neighbour._make(row[2:]) for row in found if row[2] is not None)
        return LeaseLook(found[0][0], has_leases=found[0][1], neighbours=neighbours)

    return single("look_at_leases", {"place": place, "limit": MAX_WORKERS}, decode, is_read=True, is_engine=True)


def lose(place: str, gone: Sequence[Neighbour]) -> Call[list[str]]:
    """Record that processes ended without stopping in order; returns the workers not known to have stopped."""
    if not gone:
        return known([])
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
        return (yield from read_started([WorkerRecord(*row) for row in found]))

    return Call(steps, is_read=True)


def read_started(registered: Sequence[WorkerRecord]) -> Steps[list[WorkerRecord]]:
    """Read what processes run; part of a call that has read the processes."""
    started = _by_worker((yield Step("list_started", {"limit": MAX_STARTED})))
    return [_with_jobs(one, tuple(started[one.id])) for one in registered]


def _with_jobs(worker: WorkerRecord, jobs: tuple[StartedJob, ...]) -> WorkerRecord:
    # A pull worker has no heartbeat that would report it.
    running = len(jobs) if worker.kind == PULLING else worker.running
    return replace(worker, running=running, jobs=jobs)


def _by_worker(rows: Sequence[Row]) -> defaultdict[str, list[StartedJob]]:
    started: defaultdict[str, list[StartedJob]] = defaultdict(list)
    for worker, *job in rows:
        started[worker].append(StartedJob._make(job))
    return started


def prune(gone_for: timedelta = GONE_FOR, *, limit: int = 1000) -> Call[int]:
    """Delete processes that were not seen for so long; returns how many."""
    check_wait("gone_for", gone_for, least=timedelta())
    check_range("limit", limit, 1, 10_000)
    return single("prune_workers", {"gone_for": gone_for, "limit": limit}, lambda found: found[0][0])

"""Over eight processes an open breaker is tried by one job at a time, whoever dies meanwhile."""

from __future__ import annotations

import signal

from tests.crash import prober
from tests.crash.prober import SPEC
from tests.crash.processes import Fleet, Process, until
from tests.support.raw import execute
from windlass.core.breaker import BreakerState
from windlass.core.job import JobState, NewJob
from windlass.store import Store

PROCESSES = 8
JOBS = 20
LEASE_S = 2.0
LOOKS = 5
PROBES_EACH = 10


async def test_one_probe_at_a_time_over_eight_processes_whoever_dies(store: Store, url: str, fleet: Fleet) -> None:
    ids = await gate(store)
    probers = [fleet.start(f"p{place}", prober, prober.Options(url, f"p{place}", LEASE_S)) for place in range(PROCESSES)]
    await fleet.go(*probers)
    first = await only_holder(probers)
    first.send(signal.SIGKILL)
    await first.end()
    alive = [process for process in probers if process is not first]
    second = await only_holder(alive)
    await tell(second, "fail")
    third = await only_holder(alive)
    # One for the run that was lost and one for the run that goes on; the failed probe gave its own back.
    assert sum([(await store.get(job_id)).attempt for job_id in ids]) == 2
    await tell(third, "succeed")
    await until(lambda: count(alive, "ran") == JOBS - 1, "all other jobs to run")
    assert {(await store.get(job_id)).state for job_id in ids} == {JobState.COMPLETED}
    reasons = [event.reason.value for event in reversed(await store.breakers.history("service"))]
    assert reasons == ["failures", "probe_started", "probe_started", "probe_failed", "probe_started", "probe_succeeded"]


async def test_eight_processes_that_try_as_fast_as_they_can_never_try_at_once(
    store: Store, url: str, fleet: Fleet, backend: str
) -> None:
    await gate(store)
    options = [prober.Options(url, f"p{place}", 600, PROBES_EACH) for place in range(PROCESSES)]
    probers = [fleet.start(one.name, prober, one) for one in options]
    await fleet.go(*probers)
    for process in probers:
        await process.hear("done")
        assert await process.end() == 0, process.ending()
    told = await execute(store, "select state from windlass_breaker_events order by id")
    assert told == [("open",)] + [("half_open",), ("open",)] * (PROCESSES * PROBES_EACH)
    if backend == "postgres":
        assert await execute(store, "select deadlocks from pg_stat_database where datname = current_database()") == [(0,)]


async def gate(store: Store) -> list[int]:
    """Enqueue jobs behind a breaker that is open and due."""
    at = 1 if store.database.dialect == "sqlite" else "now()"
    await execute(
        store,
        "insert into windlass_tasks (name, lane, breaker, first_seen_at, seen_at) "
        f"values ('call', 'default', 'service', {at}, {at})",
    )
    ids = [enqueued.id for enqueued in await store.enqueue([NewJob(task="call")] * JOBS)]
    assert await store.breakers.record(SPEC, succeeded=False, failures=1) is BreakerState.OPEN
    return ids


async def only_holder(probers: list[Process]) -> Process:
    """Wait for a probe, let everybody else look again, and return the process that alone holds the permit."""
    await until(lambda: bool(holders(probers)), "a probe")
    [holder] = holders(probers)
    others = [process for process in probers if process is not holder]
    looks = {process.label: len(process.said("looked")) for process in others}
    await until(lambda: all(len(process.said("looked")) >= looks[process.label] + LOOKS for process in others), "all to look")
    assert holders(probers) == [holder]
    return holder


def holders(probers: list[Process]) -> list[Process]:
    return [process for process in probers if len(process.said("probe")) > len(process.said("told"))]


async def tell(process: Process, word: str) -> None:
    told = len(process.said("told"))
    process.tell(word)
    await process.hear("told", count=told + 1)


def count(probers: list[Process], word: str) -> int:
    return sum(len(process.said(word)) for process in probers)

"""An application's ordinary tasks, run over HTTP by the engine's own worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.remote.remote_app import app as code
from tests.remote.remote_app import go, stopped
from tests.support.stores import fresh_url
from tests.web.cutting_proxy import cutting_proxy
from tests.web.serving import listening
from windlass import Windlass
from windlass.core.access import NewToken, Role
from windlass.core.cadence import Every, Recurrence
from windlass.core.job import Execution, Job, JobState, Lease, NewJob, RunReason, RunStatus, WaitReason
from windlass.core.payload import encode_object
from windlass.core.retry import RetrySpec
from windlass.errors import ConfigError, StoreUnavailable
from windlass.remote import AsyncClient
from windlass.remote_worker.running import working
from windlass.remote_worker.store import PulledWork, Wants
from windlass.store import Store

TARGET = "tests.remote.remote_app:app"
ON_SQLITE = pytest.mark.parametrize("url", ["sqlite-file"], indirect=True)
PAST = datetime(2026, 1, 1, tzinfo=UTC)
QUICK = RetrySpec(base=timedelta(milliseconds=10), cap=timedelta(milliseconds=20))


@dataclass
class House:
    """A server on a socket, and the test's own view of its database."""

    port: int
    store: Store
    token: str

    def address(self, port: int | None = None) -> str:
        return f"http://127.0.0.1:{port or self.port}"

    async def enqueue(self, task: str, **payload: Any) -> int:
        job = NewJob(task=task, lane="pull", payload=encode_object(payload), max_attempts=3, retry=QUICK, subject="about")
        return (await self.store.enqueue([job]))[0].id

    async def until(self, job_id: int, is_so: Callable[[Job], bool]) -> Job:
        for _ in range(1500):
            if is_so(job := await self.store.get(job_id)):
                return job
            await asyncio.sleep(0.01)
        raise AssertionError(await self.store.get(job_id))

    async def ended(self, job_id: int) -> Job:
        return await self.until(job_id, lambda job: job.state in {"completed", "failed", "cancelled"})

    async def runs(self, job_id: int) -> list[Execution]:
        return (await self.store.list_executions(job_id))[::-1]


@pytest.fixture(params=["sqlite-file", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    with fresh_url(request.param, tmp_path, server) as made:
        yield made


@pytest.fixture
async def house(url: str) -> AsyncIterator[House]:
    with listening(Windlass(url, admin_token="static-admin-token", lease_seconds=1), has_upkeep=True) as port:
        async with Windlass(url) as app:
            store = await app.store()
            assert isinstance(store, Store)
            token = await store.tokens.mint(NewToken(name="remote", role=Role.WORKER, lanes=("pull", "other")))
            yield House(port, store, token.secret)


async def test_runs_end_over_the_wire_as_they_do_in_process(house: House) -> None:
    ways = {how: await house.enqueue("fails", how=how) for how in ("retry", "snooze", "discard", "cancel", "always")}
    others = [await house.enqueue("add", a=1, b=2), await house.enqueue("alone"), await house.enqueue("sleeps")]
    [beyond] = await house.store.enqueue([NewJob(task="beyond", lane="other", payload='{"n":4}')])
    async with working(code, house.address(), house.token, lanes=("pull", "other"), slots=3, target=TARGET):
        jobs = {how: await house.ended(number) for how, number in ways.items()}
        added, alone, slept = [await house.ended(number) for number in others]
        assert (await house.ended(beyond.id)).state is JobState.COMPLETED
    assert [(job.state, job.attempt, job.executions) for job in jobs.values()] == [
        (JobState.COMPLETED, 2, 2),
        (JobState.COMPLETED, 1, 2),
        (JobState.FAILED, 1, 1),
        (JobState.CANCELLED, 1, 1),
        (JobState.FAILED, 3, 3),
    ]
    assert [run.reason for run in await house.runs(ways["snooze"])] == [RunReason.SNOOZED, None]
    assert (jobs["cancel"].done_reason, jobs["discard"].last_error) == ("not wanted", "no use")
    died = (await house.runs(ways["always"]))[-1]
    assert (died.error, died.error_type) == ("ValueError: number 3", "ValueError")
    assert "raise ValueError" in (died.stack_trace or "")
    assert len(await house.store.list_dead_letters(ways["always"])) == 1
    [run] = await house.runs(added.id)
    assert run.result_json is not None
    answer = run.result
    assert (answer["sum"], answer["subject"], answer["state"], answer["lane"]) == (3, "about", {"opened": True}, "pull")
    [apart] = await house.runs(alone.id)
    assert apart.result[1:] == [1, 1]
    assert apart.result[0] != answer["pid"]
    assert apart.memory_peak_mb is not None
    assert (slept.state, {run.reason for run in await house.runs(slept.id)}) == (JobState.FAILED, {RunReason.TIMED_OUT})


async def test_failed_runs_count_towards_the_breaker_of_their_task(house: House, url: str) -> None:
    # A process on the database says once which breaker the task has; a remote worker has no database to say it to.
    async with Windlass(url) as near:
        near.registry.add(code.registry.get("calls") or pytest.fail("no such task"))
        async with near.working():
            pass
        number = await house.enqueue("calls")
        async with working(code, house.address(), house.token):
            job = await house.ended(number)
        assert (job.state, job.attempt) == (JobState.FAILED, 3)
        found = await near.breakers.get("service")
    assert found is not None
    assert (found.state, found.failures) == ("open", 3)


@ON_SQLITE
async def test_a_handler_reports_as_it_does_in_process_also_past_its_target(house: House) -> None:
    job = NewJob(task="in_thread", lane="pull", payload='{"count":5}', target_count=2)
    [made] = await house.store.enqueue([job])
    async with working(code, house.address(), house.token):
        done = await house.ended(made.id)
    assert (done.result_count, done.progress_count, done.last_cursor, done.progress_message) == (5, 7, "half", "half way")
    [run] = await house.runs(made.id)
    assert (run.result_json, run.status, done.done_reason) == ("5", RunStatus.COMPLETED, None)
    assert (await house.store.items.count(job_id=made.id)).items == 5


@ON_SQLITE
async def test_content_that_cannot_be_sent_does_not_keep_a_run_from_ending(house: House) -> None:
    oddly, deeply = await house.enqueue("fails", how="oddly"), await house.enqueue("fails", how="deeply")
    async with working(code, house.address(), house.token):
        odd, deep = await house.ended(oddly), await house.ended(deeply)
    assert (odd.state, odd.attempt, odd.last_error) == (JobState.FAILED, 3, "ValueError: \ufffd and \ufffd")
    assert "a NUL: \\u0000" in ((await house.runs(oddly))[0].log_excerpt or "")
    [run] = await house.runs(deeply)
    assert (deep.state, run.result_json) == (JobState.COMPLETED, None)


@ON_SQLITE
async def test_a_cancel_reaches_the_handler_and_its_stop_is_heard(house: House) -> None:
    number = await house.enqueue("waits")
    async with working(code, house.address(), house.token):
        await house.until(number, lambda job: job.progress_message == "began")
        await house.store.cancel([number])
        left = await house.until(number, lambda job: job.token is None)
    [run] = await house.runs(number)
    assert (left.state, run.status, run.reason) == (JobState.CANCELLED, RunStatus.CANCELLED, RunReason.CANCELLED)
    assert (run.stopped_at is not None, number in stopped) == (True, True)


@ON_SQLITE
async def test_recurring_jobs_come_back_when_their_handler_says_and_after_a_stop(house: House) -> None:
    hourly = Recurrence(cadence=Every(timedelta(hours=1)))
    jobs = [NewJob(task=task, lane="pull", name=task, recurrence=hourly, run_at=PAST) for task in ("again", "hangs")]
    again, hangs = [job.id for job in await house.store.enqueue(jobs)]
    async with working(code, house.address(), house.token, slots=2):
        chosen = await house.until(again, lambda job: job.completed_runs == 1)
        await house.until(hangs, lambda job: job.progress_message == "began")
        await house.store.stop_run([hangs])
        stopped_job = await house.until(hangs, lambda job: job.state is JobState.SCHEDULED)
    now = await house.store.clock()
    assert timedelta(hours=1, minutes=55) < chosen.run_at - now < timedelta(hours=2)
    [run] = await house.runs(hangs)
    assert (stopped_job.wait_reason, run.status, run.reason) == (WaitReason.RECURRENCE, RunStatus.CANCELLED, RunReason.STOPPED)


@ON_SQLITE
async def test_a_handler_whose_lease_was_taken_stops_and_changes_nothing(house: House) -> None:
    number = await house.enqueue("waits")
    async with working(code, house.address(), house.token):
        await house.until(number, lambda job: job.progress_message == "began")
        await house.store.lanes.pause("pull")
        await house.store.take_lease([number])
        await _until(lambda: number in stopped)
    [run] = await house.runs(number)
    assert run.result_json is None


@ON_SQLITE
async def test_a_stop_gives_back_what_runs_uncharged(house: House) -> None:
    number = await house.enqueue("hangs")
    async with working(code, house.address(), house.token):
        await house.until(number, lambda job: job.progress_message == "began")
        await house.store.lanes.pause("pull")
    job = await house.store.get(number)
    [run] = await house.runs(number)
    assert (job.wait_reason, job.attempt, job.crashes) == (WaitReason.RELEASED, 0, 0)
    assert (run.status, run.reason) == (RunStatus.CANCELLED, RunReason.RELEASED)


@ON_SQLITE
async def test_an_idle_worker_stops_at_once_and_holds_nothing(house: House) -> None:
    async with working(code, house.address(), house.token):
        await asyncio.sleep(0.3)
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert await house.store.count_jobs() == []


async def test_lost_answers_cost_nothing_and_count_once(house: House) -> None:
    numbers = [await house.enqueue("in_thread", count=place + 1) for place in range(12)]
    rng, cuts = Random(7), []

    def is_cut() -> bool:
        cuts.append(rng.random() < 0.25)
        return cuts[-1]

    async with (
        cutting_proxy(house.port, is_cut) as port,
        working(code, house.address(port), house.token, slots=3),
    ):
        jobs = [await house.ended(number) for number in numbers]
    assert sum(cuts) > 10
    assert [(job.state, job.attempt, job.executions) for job in jobs] == [(JobState.COMPLETED, 1, 1)] * 12
    # The numbers 0 to 11 are shared by all of them, so each was found once.
    assert sum(job.result_count for job in jobs) == (await house.store.items.count("in_thread")).items == 12


@ON_SQLITE
async def test_a_job_whose_pull_was_never_heard_goes_back_as_if_it_had_not_been_pulled(house: House) -> None:
    number = await house.enqueue("hangs")
    is_cut = True
    async with (
        cutting_proxy(house.port, lambda: is_cut) as port,
        AsyncClient(house.address(port), house.token, retries=0) as client,
    ):
        work = PulledWork(client, Wants(("pull",), ("hangs",)), "leaver")
        with pytest.raises(StoreUnavailable):
            await work.claim(await work.slices(), 1, Lease(1, "leaver", timedelta(seconds=20)))
        assert (await house.store.get(number)).state is JobState.RUNNING
        work.close()
        is_cut = False
        await work.settle()
    job = await house.store.get(number)
    assert (job.wait_reason, job.attempt, job.executions) == (WaitReason.RELEASED, 0, 0)


@ON_SQLITE
async def test_a_server_that_is_away_delays_ends_and_loses_none(url: str) -> None:
    server = Windlass(url, admin_token="static-admin-token", lease_seconds=1)
    async with Windlass(url) as app:
        store = await app.store()
        assert isinstance(store, Store)
        token = await store.tokens.mint(NewToken(name="remote", role=Role.WORKER))
        with listening(server) as port:
            house = House(port, store, token.secret)
            go.clear()
            number = await house.enqueue("until_told")
            block = working(code, house.address(), house.token)
            await block.__aenter__()
            await house.until(number, lambda job: job.progress_message == "began")
        go.set()
        await asyncio.sleep(0.3)
        assert (await store.get(number)).state is JobState.RUNNING
        with listening(Windlass(url, admin_token="static-admin-token"), port=port):
            done = await house.ended(number)
            await block.__aexit__(None, None, None)
    assert (done.state, done.attempt) == (JobState.COMPLETED, 1)


@ON_SQLITE
@pytest.mark.parametrize(
    ("lane", "path", "said"), [("pull", "", "credential"), ("secret", "", "not for"), ("pull", "/no", "nothing at")]
)
async def test_a_worker_that_is_refused_ends_and_says_why(house: House, lane: str, path: str, said: str) -> None:
    token = "wdl_wrong" if said == "credential" else house.token
    with pytest.raises(ConfigError, match=said):
        async with working(code, f"{house.address()}{path}", token, lanes=(lane,)) as worker:
            await asyncio.wait_for(worker.stopped(), 10)


async def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(1000):
        if is_so():
            return
        await asyncio.sleep(0.01)
    raise AssertionError

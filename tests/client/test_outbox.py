from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from windlass import DuplicateJob, Enqueued, NewJob, StoreUnavailable, Windlass
from windlass.client.outbox import MOST, LoopOutbox, ThreadOutbox
from windlass.core.blocking import run
from windlass.errors import StoreRefused


class Line:
    """A store as slow as the test wants, that remembers what it was sent together."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        self.groups.append([job.task for job in jobs])
        await self.gate.wait()
        if any(job.task == "down" for job in jobs):
            raise StoreUnavailable("the database is away")
        if any(job.task == "bad" for job in jobs):
            raise StoreRefused("no such text")
        return [Enqueued(int(job.task)) for job in jobs]


async def ask(outbox: LoopOutbox[Enqueued], task: str) -> Enqueued | Exception:
    try:
        return await outbox.enqueue(NewJob(task=task))
    except StoreRefused as error:
        return error


async def test_nobody_waits_for_company_and_what_comes_meanwhile_is_the_next_group() -> None:
    line = Line()
    outbox = LoopOutbox(line.send)
    line.gate.clear()
    first = asyncio.ensure_future(outbox.enqueue(NewJob(task="1")))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    rest = [asyncio.ensure_future(outbox.enqueue(NewJob(task=str(number)))) for number in range(2, 6)]
    await asyncio.sleep(0)
    line.gate.set()
    assert await asyncio.gather(first, *rest) == [Enqueued(number) for number in range(1, 6)]
    assert line.groups == [["1"], ["2", "3", "4", "5"]]


async def test_a_refused_job_does_not_hurt_its_neighbours() -> None:
    outbox = LoopOutbox(Line().send)
    answers = await asyncio.gather(*(ask(outbox, task) for task in ("1", "bad", "3")))
    assert (answers[0], answers[2]) == (Enqueued(1), Enqueued(3))
    assert isinstance(answers[1], StoreRefused)


async def test_any_other_error_hits_only_its_own_caller() -> None:
    async def send(jobs: Sequence[NewJob]) -> list[Enqueued]:
        if any(job.task == "odd" for job in jobs):
            raise ZeroDivisionError
        return [Enqueued(int(job.task)) for job in jobs]

    outbox = LoopOutbox(send)
    answers = await asyncio.gather(*(outbox.enqueue(NewJob(task=task)) for task in ("1", "odd", "3")), return_exceptions=True)
    assert [answers[0], type(answers[1]), answers[2]] == [Enqueued(1), ZeroDivisionError, Enqueued(3)]


async def test_an_outage_is_told_to_each_with_an_error_of_its_own() -> None:
    outbox = LoopOutbox(Line().send)
    answers = await asyncio.gather(outbox.enqueue(NewJob(task="1")), outbox.enqueue(NewJob(task="down")), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable, StoreUnavailable]
    assert answers[0] is not answers[1]


async def test_a_caller_that_gives_up_takes_nobody_with_it() -> None:
    line = Line()
    outbox = LoopOutbox(line.send)
    line.gate.clear()
    calls = [asyncio.ensure_future(outbox.enqueue(NewJob(task=str(number)))) for number in (1, 2)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    calls.append(asyncio.ensure_future(outbox.enqueue(NewJob(task="3"))))
    calls.append(asyncio.ensure_future(outbox.enqueue(NewJob(task="4"))))
    await asyncio.sleep(0)
    calls[0].cancel()
    calls[2].cancel()
    await asyncio.sleep(0)
    line.gate.set()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert (answers[1], answers[3]) == (Enqueued(2), Enqueued(4))
    assert line.groups == [["1", "2"], ["4"]]


async def test_a_loop_that_ends_leaves_nobody_waiting() -> None:
    line = Line()
    outbox = LoopOutbox(line.send)
    line.gate.clear()
    call = asyncio.ensure_future(outbox.enqueue(NewJob(task="1")))
    await asyncio.sleep(0.01)
    waiting = asyncio.ensure_future(outbox.enqueue(NewJob(task="2")))
    await asyncio.sleep(0)
    assert outbox._flusher is not None
    outbox._flusher.cancel()
    answers = await asyncio.gather(call, waiting, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable, StoreUnavailable]
    line.gate.set()
    assert await outbox.enqueue(NewJob(task="3")) == Enqueued(3)


async def test_a_large_crowd_goes_in_bounded_groups() -> None:
    line = Line()
    outbox = LoopOutbox(line.send)
    await asyncio.gather(*(outbox.enqueue(NewJob(task=str(number))) for number in range(1, 1202)))
    assert [len(group) for group in line.groups] == [MOST, MOST, 201]


async def test_keyed_jobs_go_in_the_order_of_their_keys() -> None:
    line = Line()
    outbox = LoopOutbox(line.send)
    keys = {"1": "b", "2": None, "3": "a"}
    await asyncio.gather(*(outbox.enqueue(NewJob(task=task, unique_key=key)) for task, key in keys.items()))
    assert sorted(line.groups[0]) == ["1", "2", "3"]
    assert line.groups[0][0] == "2"


def test_threads_share_commits_and_pass_on_the_lead() -> None:
    groups: list[int] = []
    first_is_in, go = threading.Event(), threading.Event()

    async def send(jobs: Sequence[NewJob]) -> list[Enqueued]:
        groups.append(len(jobs))
        first_is_in.set()
        go.wait(10)
        if any(job.task == "bad" for job in jobs):
            raise StoreRefused("no")
        return [Enqueued(int(job.task)) for job in jobs]

    outbox = ThreadOutbox(send)

    def ask(task: str) -> Enqueued | str:
        try:
            return run(outbox.enqueue(NewJob(task=task)))
        except StoreRefused as error:
            return str(error)

    with ThreadPoolExecutor(12) as pool:
        first = pool.submit(ask, "1")
        assert first_is_in.wait(10)
        rest = [pool.submit(ask, task) for task in ("2", "3", "bad", "5")]
        while len(outbox._waiting) < 4:
            pass
        go.set()
        assert [call.result(10) for call in (first, *rest)] == [Enqueued(1), Enqueued(2), Enqueued(3), "no", Enqueued(5)]
    assert (groups[0], groups[1], outbox._is_busy) == (1, 4, False)


def test_an_interrupted_leader_tells_its_followers_and_passes_on() -> None:
    entered, go = threading.Event(), threading.Event()
    calls: list[int] = []

    async def send(jobs: Sequence[NewJob]) -> list[Enqueued]:
        calls.append(len(jobs))
        if len(calls) == 1:
            entered.set()
            go.wait(10)
            raise KeyboardInterrupt
        return [Enqueued(9) for _ in jobs]

    outbox = ThreadOutbox(send)
    with ThreadPoolExecutor(2) as pool:
        leader = pool.submit(lambda: run(outbox.enqueue(NewJob(task="1"))))
        assert entered.wait(10)
        follower = pool.submit(lambda: run(outbox.enqueue(NewJob(task="2"))))
        while not outbox._waiting:
            pass
        go.set()
        with pytest.raises(KeyboardInterrupt):
            leader.result(10)
        assert follower.result(10) == Enqueued(9)


async def test_twenty_racing_callers_of_one_key_make_one_job(app: Windlass) -> None:
    @app.task(unique=["to"])
    def send(to: str, number: int) -> None: ...

    answers = await asyncio.gather(*(send.enqueue("ann", number) for number in range(20)))
    assert len({answer.id for answer in answers}) == 1
    assert sum(not answer.is_duplicate for answer in answers) == 1


async def test_a_rejected_job_is_refused_alone(app: Windlass) -> None:
    @app.task(unique=["to"], on_conflict="reject")
    def send(to: str) -> None: ...

    @app.task
    def other(number: int) -> None: ...

    await send.enqueue("ann")
    answers = await asyncio.gather(send.enqueue("ann"), *map(other.enqueue, range(5)), return_exceptions=True)
    assert isinstance(answers[0], DuplicateJob)
    assert all(isinstance(answer, Enqueued) for answer in answers[1:])


async def test_loops_and_threads_enqueue_at_the_same_time(app: Windlass) -> None:
    @app.task
    def note(number: int) -> None: ...

    def from_thread(start: int) -> list[Enqueued]:
        return [note.enqueue_sync(number) for number in range(start, start + 20)]

    threads = [asyncio.to_thread(from_thread, start) for start in range(0, 200, 20)]
    here = asyncio.gather(*map(note.enqueue, range(200)))
    answers = [answer for part in await asyncio.gather(*threads) for answer in part] + list(await here)
    assert len({answer.id for answer in answers}) == 400
    assert sum(count.jobs for count in await app.counts()) == 400


async def lonely(line: Line) -> LoopOutbox[Enqueued]:
    """Give an outbox whose last caller was alone: the next one sends for itself."""
    outbox = LoopOutbox(line.send)
    await outbox.enqueue(NewJob(task="1"))
    line.groups.clear()
    return outbox


async def test_what_comes_while_a_lonely_caller_sends_is_the_next_group() -> None:
    line = Line()
    outbox = await lonely(line)
    line.gate.clear()
    calls = [asyncio.ensure_future(outbox.enqueue(NewJob(task=str(number)))) for number in range(2, 6)]
    await asyncio.sleep(0)
    line.gate.set()
    assert await asyncio.gather(*calls) == [Enqueued(number) for number in range(2, 6)]
    assert line.groups == [["2"], ["3", "4", "5"]]
    await asyncio.gather(*(outbox.enqueue(NewJob(task=str(number))) for number in range(6, 9)))
    assert line.groups[2:] == [["6", "7", "8"]]


async def test_a_lonely_caller_that_gives_up_or_is_refused_leaves_the_others_their_turn() -> None:
    line = Line()
    outbox = await lonely(line)
    line.gate.clear()
    first = asyncio.ensure_future(outbox.enqueue(NewJob(task="2")))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(outbox.enqueue(NewJob(task="3")))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    line.gate.set()
    assert await second == Enqueued(3)
    assert isinstance(await ask(outbox, "bad"), StoreRefused)
    assert await outbox.enqueue(NewJob(task="4")) == Enqueued(4)

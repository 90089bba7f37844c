from __future__ import annotations

import asyncio
import contextlib
import gc
import subprocess
import sys
import threading
import time
import weakref
from contextvars import ContextVar

import pytest

from tests.worker.living import until
from windlass.worker.threads import Abandoned, SlotThread, ThreadCount

pytestmark = pytest.mark.anyio

colour = ContextVar("colour", default="none")


async def test_a_function_runs_in_another_thread_and_its_result_comes_back() -> None:
    slot = SlotThread("mine")
    assert await slot.run(lambda: threading.current_thread().name) == "mine"
    slot.close()


async def test_the_thread_is_kept_for_the_next_call() -> None:
    slot = SlotThread()
    assert await slot.run(threading.get_ident) == await slot.run(threading.get_ident)
    slot.close()


@pytest.mark.parametrize(
    "error", [ValueError("x"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("bare")], ids=repr
)
async def test_whatever_a_function_raises_comes_through_and_the_thread_lives_on(error: BaseException) -> None:
    slot = SlotThread()

    def fail() -> None:
        raise error

    before = await slot.run(threading.get_ident)
    with pytest.raises(type(error)) as caught:
        await slot.run(fail)
    assert caught.value is error
    assert await slot.run(threading.get_ident) == before
    slot.close()


async def test_stop_iteration_arrives_as_a_runtime_error() -> None:
    slot = SlotThread()
    with pytest.raises(RuntimeError) as caught:
        await slot.run(lambda: next(iter(())))
    assert isinstance(caught.value.__cause__, StopIteration)
    slot.close()


async def test_a_cancelled_error_of_the_function_does_not_count_as_the_callers() -> None:
    slot = SlotThread()

    def fail() -> None:
        raise asyncio.CancelledError

    before = await slot.run(threading.get_ident)
    with pytest.raises(asyncio.CancelledError):
        await slot.run(fail)
    assert await slot.run(threading.get_ident) == before, "the thread was not given up"
    slot.close()


async def test_context_variables_of_the_caller_are_seen_and_changes_stay_inside() -> None:
    slot = SlotThread()
    colour.set("red")
    assert await slot.run(colour.get) == "red"
    await slot.run(lambda: colour.set("blue"))
    assert colour.get() == "red"
    assert await slot.run(colour.get) == "red"
    slot.close()


async def test_an_abandoned_call_is_released_at_once_and_its_late_result_dropped() -> None:
    lost = ThreadCount()
    slot = SlotThread(lost=lost)
    entered, gate = threading.Event(), threading.Event()

    def hang() -> str:
        entered.set()
        # In C: the exception that is sent cannot end it.
        gate.wait()
        return "late"

    async with asyncio.TaskGroup() as group:
        call = group.create_task(_ending(slot.run(hang)))
        await until(entered.is_set, "the function to start")
        slot.abandon()
        assert isinstance(await call, Abandoned)
    assert lost.alive == 1
    assert await slot.run(lambda: "fresh") == "fresh"
    gate.set()
    await until(lambda: lost.alive == 0, "the abandoned thread to end")
    assert await slot.run(lambda: "still") == "still"
    slot.close()


async def test_a_loop_in_python_ends_when_it_is_abandoned() -> None:
    lost = ThreadCount()
    slot = SlotThread(lost=lost)
    entered = threading.Event()

    def spin() -> None:
        entered.set()
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0)

    async with asyncio.TaskGroup() as group:
        call = group.create_task(_ending(slot.run(spin)))
        await until(entered.is_set, "the function to start")
        slot.abandon()
        assert isinstance(await call, Abandoned)
    await until(lambda: lost.alive == 0, "the thread to be interrupted")
    slot.close()


async def test_cancelling_the_caller_abandons_the_thread() -> None:
    lost = ThreadCount()
    slot = SlotThread(lost=lost)
    entered, gate = threading.Event(), threading.Event()

    def hang() -> None:
        entered.set()
        gate.wait()

    async with asyncio.TaskGroup() as group:
        call = group.create_task(_ending(slot.run(hang)))
        await until(entered.is_set, "the function to start")
        call.cancel()
        assert isinstance(await call, asyncio.CancelledError)
    assert lost.alive == 1
    assert await slot.run(lambda: 1) == 1
    gate.set()
    await until(lambda: lost.alive == 0, "the abandoned thread to end")
    slot.close()


async def test_abandoning_an_idle_slot_does_nothing() -> None:
    lost = ThreadCount()
    slot = SlotThread(lost=lost)
    slot.abandon()
    before = await slot.run(threading.get_ident)
    slot.abandon()
    assert await slot.run(threading.get_ident) == before
    assert lost.alive == 0
    slot.close()


async def test_an_interrupt_never_hits_a_later_call() -> None:
    """Abandon at every possible moment of a short call: whatever happens to it, the next one is untouched."""
    lost = ThreadCount()
    slot = SlotThread(lost=lost)
    async with asyncio.TaskGroup() as group:
        for pause in range(300):
            call = group.create_task(_ending(slot.run(lambda: sum(range(500)))))
            for _ in range(pause % 7):
                await asyncio.sleep(0)
            slot.abandon()
            end = await call
            assert end == sum(range(500)) or isinstance(end, Abandoned)
            assert await slot.run(lambda: sum(range(5000))) == sum(range(5000))
    await until(lambda: lost.alive == 0, "the abandoned threads to end")
    slot.close()


async def test_a_slot_takes_one_call_at_a_time() -> None:
    slot = SlotThread()
    gate = threading.Event()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(slot.run(gate.wait))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="one call at a time"):
            await slot.run(gate.wait)
        gate.set()
    assert first.result()
    slot.close()


async def test_an_idle_thread_keeps_nothing_of_the_last_call_alive() -> None:
    class Thing:
        pass

    slot = SlotThread()
    seen: list[weakref.ref[Thing]] = []

    def make() -> Thing:
        thing = Thing()
        seen.append(weakref.ref(thing))
        return thing

    await slot.run(make)
    await until(lambda: gc.collect() >= 0 and seen[0]() is None, "the result to be let go")
    slot.close()


async def test_closing_ends_the_thread() -> None:
    slot = SlotThread("to-be-closed")
    await slot.run(lambda: None)
    slot.close()
    await until(lambda: all(each.name != "to-be-closed" for each in threading.enumerate()), "the thread to end")


def test_the_interpreter_ends_promptly_with_hung_threads() -> None:
    script = """
import asyncio, threading, time
from windlass.worker.threads import Abandoned, SlotThread, ThreadCount
async def main():
    lost = ThreadCount()
    for _ in range(20):
        slot = SlotThread(lost=lost)
        call = asyncio.ensure_future(slot.run(lambda: time.sleep(600)))
        await asyncio.sleep(0.01)
        slot.abandon()
        try:
            await call
        except Abandoned:
            pass
    print(lost.alive)
asyncio.run(main())
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "20\n"
    assert ended.stderr == ""


async def _ending(call: object) -> object:
    """Give what a call returns or raises."""
    try:
        return await call  # type: ignore[misc]
    except BaseException as error:  # noqa: BLE001 - the test looks at it
        return error

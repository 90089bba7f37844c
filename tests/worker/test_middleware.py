"""What goes around every run: `@app.middleware`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from tests.worker import middleware_app
from windlass import (
    Cancel,
    ConfigError,
    Discard,
    EndEvent,
    HandlerCall,
    InvalidInput,
    JobCancelled,
    JobContext,
    JobFailed,
    JobState,
    Retry,
    Snooze,
    Windlass,
)
from windlass.testing import fresh, run_all_sync

TENANT: ContextVar[str] = ContextVar("TENANT", default="none")
KINDS = ("coroutine", "function")


@pytest.fixture
def app(url: str) -> Windlass:
    return Windlass(url, retry_base="10ms", retry_jitter=0.0)


def declare(app: Windlass, kind: str, work: Callable[..., Any]) -> None:
    """Declare the task `work` as a coroutine or as a function."""

    async def coroutine(ctx: JobContext, number: int) -> Any:
        await asyncio.sleep(0)
        return work(ctx, number)

    def function(ctx: JobContext, number: int) -> Any:
        return work(ctx, number)

    if kind == "function":
        app.task(name="work", max_attempts=3)(function)
    else:
        app.task(name="work", max_attempts=3)(coroutine)


@pytest.mark.parametrize("kind", KINDS)
async def test_it_goes_around_the_handler_in_the_order_it_was_declared(app: Windlass, kind: str) -> None:
    heard: list[Any] = []

    @app.middleware
    def outer(call: HandlerCall) -> Iterator[None]:
        heard.append(("outer", call.context.task, call.context.attempt, dict(call.arguments)))
        heard.append(("outer result", (yield)))

    @app.middleware
    def inner(call: HandlerCall) -> Iterator[None]:
        call.arguments["number"] += 1
        yield
        heard.append("inner end")
        call.context.metadata = {"spent": 3}

    def work(_ctx: JobContext, number: int) -> int:
        heard.append(number)
        return number * 2

    declare(app, kind, work)
    async with app, app.working():
        job = await app.enqueue("work", {"number": 4})
        assert await app.wait(job, timeout=20) == 10
        [run] = await app.executions(job)
    assert heard == [("outer", "work", 1, {"number": 4}), 5, "inner end", ("outer result", 10)]
    assert run.metadata_json == '{"spent":3}'


@pytest.mark.parametrize("kind", KINDS)
async def test_it_sees_the_exception_and_the_failure_is_the_handlers_own(app: Windlass, kind: str) -> None:
    seen: list[BaseException] = []

    @app.middleware
    def watch(_call: HandlerCall) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            seen.append(error)
            raise

    def work(_ctx: JobContext, _number: int) -> None:
        raise ValueError("no")

    declare(app, kind, work)
    async with app, app.working():
        job = await app.enqueue("work", {"number": 1})
        with pytest.raises(JobFailed, match="ValueError: no"):
            await app.wait(job, timeout=20)
        traces = [run.stack_trace or "" for run in await app.executions(job)]
    assert [str(error) for error in seen] == ["no"] * 3
    # The stack trace begins with the handler: middleware is not in the way of who reads it.
    assert all("in work" in trace and "in watch" not in trace and "worker/middleware" not in trace for trace in traces)


@pytest.mark.parametrize("kind", KINDS)
async def test_an_exception_that_it_keeps_to_itself_is_forgiven(app: Windlass, kind: str) -> None:
    @app.middleware
    def forgive(_call: HandlerCall) -> Iterator[None]:
        try:
            yield
        except KeyError:
            return

    def work(_ctx: JobContext, _number: int) -> None:
        raise KeyError("gone")

    declare(app, kind, work)
    async with app, app.working():
        assert await app.wait(await app.enqueue("work", {"number": 1}), timeout=20) is None


@pytest.mark.parametrize("kind", KINDS)
async def test_it_may_refuse_a_run_and_the_handler_is_not_called(app: Windlass, kind: str) -> None:
    called: list[int] = []
    refusals = {1: Discard("never"), 2: Cancel("not wanted"), 3: Retry(after="10ms"), 4: Snooze("10ms")}

    @app.middleware
    def gate(call: HandlerCall) -> Iterator[None]:
        refusal = refusals.get(call.arguments["number"])
        if refusal is not None and call.context.execution == 1:
            raise refusal
        yield

    def work(ctx: JobContext, number: int) -> int:
        called.append(number)
        return ctx.attempt

    declare(app, kind, work)
    async with app, app.working():
        jobs = [await app.enqueue("work", {"number": number}) for number in (1, 2, 3, 4)]
        with pytest.raises(JobFailed, match="never"):
            await app.wait(jobs[0], timeout=20)
        with pytest.raises(JobCancelled, match="not wanted"):
            await app.wait(jobs[1], timeout=20)
        # A retry uses up an attempt, a snooze does not.
        assert await app.wait(jobs[2], timeout=20) == 2
        assert await app.wait(jobs[3], timeout=20) == 1
    assert sorted(called) == [3, 4]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_context_variable_it_sets_is_the_handlers_and_no_other_runs(app: Windlass, kind: str) -> None:
    @app.middleware
    def tenant(call: HandlerCall) -> Iterator[None]:
        before = TENANT.get()
        TENANT.set(f"tenant {call.arguments['number']}")
        yield
        call.context.metadata = {"before": before}

    declare(app, kind, lambda _ctx, _number: TENANT.get())
    async with app, app.working():
        jobs = [await app.enqueue("work", {"number": number}) for number in range(5)]
        assert [await app.wait(job, timeout=20) for job in jobs] == [f"tenant {number}" for number in range(5)]
        assert [(await app.executions(job))[0].metadata_json for job in jobs] == ['{"before":"none"}'] * 5


async def test_one_for_coroutines_only_leaves_functions_alone(app: Windlass) -> None:
    heard: list[Any] = []

    @app.middleware(only="async")
    async def opened(call: HandlerCall) -> AsyncIterator[None]:
        await asyncio.sleep(0)
        try:
            result = yield
            heard.append((call.context.task, result))
        except ValueError as error:
            heard.append(error)
            raise Discard("mended") from error
        finally:
            await asyncio.sleep(0)

    @app.task
    async def good() -> int:
        return 7

    @app.task
    async def bad() -> None:
        raise ValueError("x")

    @app.task
    def plain() -> int:
        return threading.get_ident()

    async with app, app.working():
        assert await app.wait(await good.enqueue(), timeout=20) == 7
        with pytest.raises(JobFailed, match="mended"):
            await app.wait(await bad.enqueue(), timeout=20)
        assert await app.wait(await plain.enqueue(), timeout=20) != threading.get_ident()
    assert [heard[0], str(heard[1])] == [("good", 7), "x"]
    assert len(heard) == 2


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_a_gate_that_cannot_go_around_functions_keeps_a_worker_from_starting(app: Windlass, isolation: Any) -> None:
    @app.middleware
    async def gate(call: HandlerCall) -> AsyncIterator[None]:
        if call.context.task:
            raise Discard("not today")
        yield

    @app.task
    async def coroutine() -> None: ...

    @app.task(isolation=isolation)
    def function() -> None: ...

    async with app:
        job = await function.enqueue()
        with pytest.raises(ConfigError, match=r"gate: is `async` and cannot go around functions, .*: function; make it a plain"):
            async with app.working(target="nowhere:app"):
                pytest.fail("the worker started")
        assert (await app.get(job.id)).state is JobState.PENDING
    with pytest.raises(ConfigError, match="cannot go around functions"):
        run_all_sync(app)


def test_the_command_names_the_gate_and_the_tasks(url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(GATED)
    command = [sys.executable, "-m", "windlass", "worker", "shop:app"]
    env = os.environ | {"WINDLASS_DATABASE_URL": url}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "middleware gate: is `async` and cannot go around functions, and these tasks are functions: mail" in done.stderr
    assert "Traceback" not in done.stderr


GATED = """\
from windlass import Windlass

app = Windlass()


@app.middleware
async def gate(call):
    yield


@app.task
def mail() -> None: ...
"""


async def test_a_gate_that_awaits_may_stand_beside_functions_that_this_worker_does_not_run(url: str) -> None:
    app = Windlass(url, tasks=["coroutine"])

    @app.middleware
    async def gate(call: HandlerCall) -> AsyncIterator[None]:
        if call.context.task:
            raise Discard("not today")
        yield

    @app.task(max_attempts=1)
    async def coroutine() -> None: ...

    @app.task
    def function() -> None: ...

    async with app, app.working():
        with pytest.raises(JobFailed, match="not today"):
            await app.wait(await coroutine.enqueue(), timeout=20)


def test_only_middleware_that_awaits_is_for_coroutines_only(app: Windlass) -> None:
    def plain(_call: HandlerCall) -> Iterator[None]:
        yield

    with pytest.raises(InvalidInput, match="a plain generator goes around every run"):
        app.middleware(only="async")(plain)
    with pytest.raises(InvalidInput, match='only: must be "async"'):
        app.middleware(only="thread")(plain)  # type: ignore[call-overload]  # it is wrong on purpose


async def test_a_run_that_times_out_is_cancelled_inside_its_middleware(app: Windlass) -> None:
    cleaned: list[str] = []

    @app.middleware
    async def clean(_call: HandlerCall) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await asyncio.sleep(0)
            cleaned.append("async")

    @app.middleware
    def clean_too(_call: HandlerCall) -> Iterator[None]:
        try:
            yield
        finally:
            cleaned.append("plain")

    @app.task(timeout="100ms", max_attempts=1)
    async def linger() -> None:
        await asyncio.Event().wait()

    async with app, app.working():
        with pytest.raises(JobFailed, match="timed out after 100 ms"):
            await app.wait(await linger.enqueue(), timeout=20)
    assert cleaned == ["plain", "async"]


@pytest.mark.parametrize("error", [StopIteration("done"), StopAsyncIteration("done")])
async def test_errors_that_no_generator_may_raise_pass_through(app: Windlass, error: Exception) -> None:
    @app.middleware
    def plain(_call: HandlerCall) -> Iterator[None]:
        yield

    @app.middleware(only="async")
    async def awaiting(_call: HandlerCall) -> AsyncIterator[None]:
        yield

    @app.task(name="work", max_attempts=1)
    def work() -> None:
        raise error

    async with app, app.working():
        with pytest.raises(JobFailed, match=f"{type(error).__name__}: done"):
            await app.wait(await work.enqueue(), timeout=20)


def never(_call: HandlerCall) -> Iterator[None]:
    if os.environ.get("NEVER"):
        yield


def twice(_call: HandlerCall) -> Iterator[None]:
    yield
    yield


async def never_async(_call: HandlerCall) -> AsyncIterator[None]:
    if os.environ.get("NEVER"):
        yield


async def twice_async(_call: HandlerCall) -> AsyncIterator[None]:
    yield
    yield


@pytest.mark.parametrize("middleware", [never, twice, never_async, twice_async])
async def test_one_that_does_not_yield_exactly_once_fails_the_run(app: Windlass, middleware: Any) -> None:
    app.middleware(middleware)

    @app.task(max_attempts=1)
    async def work(number: int) -> None: ...

    async with app, app.working():
        with pytest.raises(JobFailed, match="must yield exactly once"):
            await app.wait(await work.enqueue(1), timeout=20)


def test_what_does_not_yield_is_refused(app: Windlass) -> None:
    def plain(_call: HandlerCall) -> Iterator[None]:
        return iter(())

    async def later(_call: HandlerCall) -> None: ...

    for odd in (plain, later):
        with pytest.raises(InvalidInput, match="must be a function with one `yield`"):
            app.middleware(odd)  # type: ignore[type-var]  # it is wrong on purpose


def test_without_middleware_a_worker_runs_the_functions_themselves(app: Windlass) -> None:
    @app.task
    async def work(number: int) -> None: ...

    assert app.served() is app.registry
    spec = app.registry.get("work")
    assert spec is not None
    assert spec.function is work.__wrapped__  # type: ignore[attr-defined]  # what functools keeps


async def test_in_a_child_process_it_runs_there(url: str) -> None:
    app = middleware_app.make(url)
    async with app, app.working(target="tests.worker.middleware_app:app"):
        for task in ("double", "double_later"):
            job = await app.enqueue(task, {"number": 4})
            assert await app.wait(job, timeout=60) == 10
            [run] = await app.executions(job)
            noted = run.metadata
            assert noted["result"] == 10
            assert noted["pid"] != os.getpid()
        with pytest.raises(JobFailed, match="unlucky"):
            await app.wait(await app.enqueue("double", {"number": 13}), timeout=60)


async def test_hooks_get_the_error_of_a_child_process(url: str) -> None:
    app = middleware_app.make(url)
    events: list[EndEvent] = []
    app.on("fail")(events.append)
    async with app, app.working(target="tests.worker.middleware_app:app"):
        for number in (0, 4):
            with pytest.raises(JobFailed):
                await app.wait(await app.enqueue("fail", {"number": number}), timeout=60)
    assert [repr(event.exception) for event in events] == ["LookupError('nowhere')", "Unlucky('not 5')"]
    assert isinstance(events[1].exception, middleware_app.Unlucky)
    assert "raise Unlucky" in str(events[1].traceback)


def test_run_all_runs_it_as_a_worker_does(app: Windlass) -> None:
    @app.middleware
    def gate(call: HandlerCall) -> Iterator[None]:
        if call.arguments["number"]:
            raise Discard("not today")
        yield

    @app.task
    async def work(number: int) -> None: ...

    with fresh(app):
        job = work.enqueue_sync(1)
        run_all_sync(app)
        assert app.get_sync(job).state is JobState.FAILED

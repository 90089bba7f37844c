from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.worker.living import TAG, is_running, list_tagged, list_zombies, state_of, until
from windlass.core.job import Claimed
from windlass.core.signals import Cancel, Discard, Retry, Signal, Snooze
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.worker.context import Again
from windlass.worker.lease_times import Late
from windlass.worker.processes import ChildNotStarted, ChildRunner
from windlass.worker.wire import ChildEnd, ChildRaised, ChildReturned, Crashed, pack_job, unpack_job

pytestmark = pytest.mark.anyio

APP = "tests.worker.handlers:app"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def a_job(task: str, **payload: Any) -> Claimed:
    return Claimed(
        id=77,
        task=task,
        lane="default",
        payload=json.dumps(payload),
        priority=0,
        run_at=NOON,
        slot_at=None,
        attempt=1,
        max_attempts=3,
        execution=1,
        crashes=0,
        consecutive_failures=0,
        completed_runs=0,
        retry="{}",
        cadence=None,
        timeout_us=None,
        token=5,
        worker="w",
        claimed_at=NOON,
        lease_expires_at=NOON + timedelta(seconds=30),
        subject=None,
        correlation_id="c",
        parent_id=None,
        last_cursor=None,
        progress_count=0,
        result_count=0,
        target_count=None,
    )


class Store:
    """Answers what handlers ask for, and remembers it."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Mapping[str, Any]]] = []
        self.error: Exception | None = None
        self.started = asyncio.Event()

    async def __call__(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        self.asked.append((verb, arguments))
        self.started.set()
        if self.error is not None:
            raise self.error
        return [len(arguments["items"]) - 1, 1] if verb == "items" else None


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[ChildRunner]:
    """Keep one runner for all tests: most of them leave its child as it was, and starting one takes longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(TAG, uuid4().hex)
        runner = ChildRunner(APP, close_timeout=timedelta(seconds=20))
        yield runner
        await runner.close()
        assert list_tagged(os.environ[TAG]) == []


@pytest.fixture
async def runner(shared: ChildRunner) -> AsyncIterator[ChildRunner]:
    """Give the runner, and see that of all it started nothing but its warm child is left afterwards."""
    yield shared
    await shared.start()
    await until(lambda: list_tagged(os.environ[TAG]) == [shared.pid], "all else to be gone")
    assert list_zombies() == []


async def run(runner: ChildRunner, task: str, **payload: Any) -> ChildEnd:
    return await runner.run(a_job(task, **payload), handle=Store())


async def result_of(runner: ChildRunner, task: str, **payload: Any) -> Any:
    outcome = (await run(runner, task, **payload)).outcome
    assert isinstance(outcome, ChildReturned), outcome
    return None if outcome.result is None else json.loads(outcome.result)


async def error_of(runner: ChildRunner, kind: str) -> ChildRaised:
    outcome = (await run(runner, "fail", kind=kind)).outcome
    assert isinstance(outcome, ChildRaised), outcome
    assert await result_of(runner, "add", a=1, b=1) == 2, "the child lives on"
    return outcome


async def crash_of(runner: ChildRunner, task: str, **payload: Any) -> Crashed:
    outcome = (await run(runner, task, **payload)).outcome
    assert isinstance(outcome, Crashed), outcome
    assert await result_of(runner, "add", a=1, b=1) == 2, "the next job gets a new child"
    return outcome


@pytest.mark.parametrize("task", ["add", "add_async"])
async def test_a_function_and_a_coroutine_give_their_result(runner: ChildRunner, task: str) -> None:
    assert await result_of(runner, task, a=2, b=3) == 5


async def test_a_warm_child_is_told_of_its_job_and_keeps_the_lifespans_state(runner: ChildRunner) -> None:
    first = await result_of(runner, "whoami")
    assert first == {"pid": runner.pid, "job": 77, "current": 77, "opened": 1}
    assert await result_of(runner, "whoami") == first
    assert await result_of(runner, "whose_loop") is True


async def test_the_lifespan_is_left_when_the_runner_closes(
    runner: ChildRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await runner.close()
    monkeypatch.setenv("WINDLASS_TEST_LEFT", str(tmp_path / "left"))
    await result_of(runner, "add", a=1, b=1)
    await runner.close()
    assert (tmp_path / "left").read_text() == "left"


async def test_a_segmentation_fault_is_a_crash_that_names_the_signal(runner: ChildRunner) -> None:
    crash = await crash_of(runner, "segfault")
    assert crash.signal == signal.SIGSEGV
    assert "SIGSEGV" in crash.text


async def test_an_exit_is_a_crash_that_names_the_code(runner: ChildRunner) -> None:
    crash = await crash_of(runner, "leave", code=9)
    assert crash.exit_code == 9
    assert "exited with 9" in crash.text


async def test_an_exit_with_zero_is_a_crash_too(runner: ChildRunner) -> None:
    assert (await crash_of(runner, "leave", code=0)).exit_code == 0


async def test_a_kill_from_outside_is_taken_for_lack_of_memory(runner: ChildRunner) -> None:
    crash = await crash_of(runner, "signal_self", number=signal.SIGKILL)
    assert crash.signal == signal.SIGKILL
    assert "memory" in crash.text
    assert not crash.is_memory
    assert not crash.is_killed


async def test_a_handler_that_allocates_without_end_is_ended_at_its_limit(runner: ChildRunner) -> None:
    await runner.start()
    started = time.monotonic()
    end = await runner.run(a_job("allocate"), handle=Store(), memory_limit_mb=64)
    assert isinstance(end.outcome, Crashed)
    assert end.outcome.is_memory
    assert "memory" in end.outcome.text
    assert "64 MB" in end.outcome.text
    assert end.memory_peak_mb is not None
    assert end.memory_peak_mb >= 64
    assert time.monotonic() - started < 10
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_a_job_within_its_limit_runs_and_one_after_it_pays_nothing_for_it(runner: ChildRunner) -> None:
    limited = await runner.run(a_job("hold", megabytes=20), handle=Store(), memory_limit_mb=300)
    assert limited.outcome == ChildReturned(str(20 * 2**20))
    assert await result_of(runner, "hold", megabytes=400) == 400 * 2**20


async def test_memory_peak_is_of_the_job_and_not_of_the_childs_life(runner: ChildRunner) -> None:
    large = await run(runner, "hold", megabytes=150)
    small = await run(runner, "add", a=1, b=1)
    assert large.memory_peak_mb is not None
    assert small.memory_peak_mb is not None
    assert large.memory_peak_mb >= 150 > small.memory_peak_mb


async def test_cpu_time_is_measured(runner: ChildRunner) -> None:
    end = await run(runner, "burn", seconds=0.2)
    assert end.cpu_time_ms is not None
    assert 190 <= end.cpu_time_ms < 2000
    quick = await run(runner, "add", a=1, b=1)
    assert quick.cpu_time_ms is not None
    assert quick.cpu_time_ms < 100


async def test_kill_ends_a_hung_handler_with_every_process_it_started(runner: ChildRunner, store: Store, tmp_path: Path) -> None:
    async with asyncio.TaskGroup() as group:
        job = a_job("start_and_hang", path=str(tmp_path / "pids"))
        running = group.create_task(runner.run(job, handle=store))
        await store.started.wait()
        pids = json.loads((tmp_path / "pids").read_text())
        assert [is_running(pid) for pid in pids] == [True] * 4
        await runner.kill()
    assert [is_running(pid) for pid in pids] == [False] * 4
    outcome = running.result().outcome
    assert isinstance(outcome, Crashed)
    assert outcome.is_killed
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_child_that_thaws_after_the_last_moment_to_start_does_not_call_the_handler(
    runner: ChildRunner, store: Store, tmp_path: Path
) -> None:
    await runner.start()
    assert runner.pid is not None
    os.kill(runner.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(5):
            job = a_job("start_and_hang", path=str(tmp_path / "pids"))
            running = asyncio.create_task(runner.run(job, handle=store, left_to_start=lambda: 0.2))
            await asyncio.sleep(0.3)
    finally:
        os.kill(runner.pid, signal.SIGCONT)
    with pytest.raises(Late):
        async with asyncio.timeout(5):
            await running
    assert not (tmp_path / "pids").exists()
    before = runner.pid
    assert await result_of(runner, "add", a=1, b=1) == 2
    assert runner.pid == before


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux lets a child adopt orphans")
async def test_kill_ends_a_daemon_that_left_group_session_and_environment(
    runner: ChildRunner, store: Store, tmp_path: Path
) -> None:
    async with asyncio.TaskGroup() as group:
        job = a_job("daemonize_and_hang", path=str(tmp_path / "pids"))
        group.create_task(runner.run(job, handle=store))
        await store.started.wait()
        [daemon] = json.loads((tmp_path / "pids").read_text())
        assert is_running(daemon)
        await runner.kill()
    assert not is_running(daemon)


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: only Linux lets a child adopt orphans")
async def test_child_that_ends_in_order_leaves_no_daemon_behind(runner: ChildRunner, tmp_path: Path) -> None:
    assert await result_of(runner, "daemonize", path=str(tmp_path / "pids")) is None
    [daemon] = json.loads((tmp_path / "pids").read_text())
    assert is_running(daemon)
    await runner.close()
    assert not is_running(daemon)


async def test_what_a_crashed_handler_started_is_ended_before_the_crash_is_told(runner: ChildRunner, tmp_path: Path) -> None:
    crash = (await run(runner, "start_and_crash", path=str(tmp_path / "pids"))).outcome
    assert isinstance(crash, Crashed)
    assert crash.exit_code == 3
    assert [is_running(pid) for pid in json.loads((tmp_path / "pids").read_text())] == [False, False]


@pytest.mark.parametrize("task", ["cut_the_wire", "talk_nonsense"])
async def test_a_child_that_can_no_longer_be_understood_is_a_crash(runner: ChildRunner, task: str) -> None:
    assert "connection" in (await crash_of(runner, task)).text


@pytest.mark.parametrize("task", ["hang", "hold_the_gil"])
async def test_kill_works_on_a_handler_that_hears_nothing(runner: ChildRunner, store: Store, task: str) -> None:
    await _kill_at_work(runner, store, task, lambda _pid: None)


async def test_kill_works_on_a_stopped_child(runner: ChildRunner, store: Store) -> None:
    def stop(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    await _kill_at_work(runner, store, "hang", stop)


async def _kill_at_work(runner: ChildRunner, store: Store, task: str, before: Callable[[int], None]) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job(task), handle=store))
        await store.started.wait()
        pid = runner.pid
        assert pid is not None
        before(pid)
        started = time.monotonic()
        await runner.kill()
        took = time.monotonic() - started
    assert state_of(pid) is None
    outcome = running.result().outcome
    assert isinstance(outcome, Crashed)
    assert outcome.is_killed
    # A tenth of a second on a machine of our own; others may be using this one.
    assert took < 2


async def test_a_kill_meant_for_an_earlier_run_leaves_the_next_one_alone(runner: ChildRunner, store: Store) -> None:
    await result_of(runner, "add", a=1, b=1)
    earlier = runner.number
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job("wait_for_stop"), handle=store))
        await store.started.wait()
        runner.kill_now(earlier)
        runner.stop()
    assert running.result().outcome == ChildReturned('"saw it"')
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_cancelling_the_caller_kills_the_child(runner: ChildRunner, store: Store) -> None:
    running = asyncio.ensure_future(runner.run(a_job("hang"), handle=store))
    await store.started.wait()
    pid = runner.pid
    assert pid is not None
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: state_of(pid) is None, "the child to be reaped")
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_a_function_sees_the_stop_and_may_end_in_its_own_way(runner: ChildRunner, store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job("wait_for_stop"), handle=store))
        await store.started.wait()
        runner.stop()
    assert running.result().outcome == ChildReturned('"saw it"')


async def test_a_coroutine_is_cancelled_by_a_stop_and_the_child_lives_on(runner: ChildRunner, store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job("wait_for_cancel"), handle=store))
        await store.started.wait()
        pid = runner.pid
        runner.stop()
    outcome = running.result().outcome
    assert isinstance(outcome, ChildRaised)
    assert outcome.is_cancelled
    assert await result_of(runner, "add", a=1, b=1) == 2
    assert runner.pid == pid


async def test_a_stop_before_the_child_is_ready_reaches_the_handler(runner: ChildRunner, store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job("wait_for_stop"), handle=store))
        await asyncio.sleep(0)
        assert not store.asked
        runner.stop()
    assert running.result().outcome == ChildReturned('"saw it"')


async def test_printing_goes_to_the_workers_output_and_breaks_nothing(
    runner: ChildRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    # A new child, for it writes where the worker's output went when it started.
    await runner.close()
    assert await result_of(runner, "chat") is None
    assert await result_of(runner, "add", a=1, b=1) == 2
    said = capfd.readouterr()
    assert "said on stdout" in said.out
    assert "said on stderr" in said.err


async def test_a_forked_copy_that_returns_does_not_answer_for_the_child(runner: ChildRunner) -> None:
    for task in ("fork_and_return", "fork_in_coroutine"):
        assert await result_of(runner, task) == 1
        assert await result_of(runner, "add", a=1, b=1) == 2


async def test_a_huge_result_is_replaced_by_words(runner: ChildRunner) -> None:
    shown = await result_of(runner, "give", kind="huge")
    assert isinstance(shown, dict)
    assert len(json.dumps(shown)) < 10_000


async def test_a_large_result_arrives_whole(runner: ChildRunner) -> None:
    assert await result_of(runner, "give", kind="large") == "é" * 500_000


async def test_a_large_payload_arrives_whole(runner: ChildRunner) -> None:
    assert await result_of(runner, "add", a="é" * 400_000, b="!") == "é" * 400_000 + "!"


@pytest.mark.parametrize("kind", ["object", "set"])
async def test_a_result_that_is_not_json_says_so(runner: ChildRunner, kind: str) -> None:
    assert "not a JSON type" in json.dumps(await result_of(runner, "give", kind=kind))


async def test_nothing_returned_is_no_result(runner: ChildRunner) -> None:
    assert (await run(runner, "give", kind="none")).outcome == ChildReturned(None)


async def test_an_error_comes_with_its_traceback_from_the_handler_on(runner: ChildRunner) -> None:
    raised = await error_of(runner, "plain")
    assert (raised.kind, raised.message) == ("ValueError", "ValueError: it went wrong")
    assert raised.trace is not None
    assert "in fail" in raised.trace
    assert "worker/child.py" not in raised.trace
    assert raised.error is None
    assert not raised.is_final
    assert raised.policy is None


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("empty", "ValueError", "ValueError"),
        ("unpicklable", "Unpicklable", "Unpicklable: 1 and 2"),
        ("exit", "SystemExit", "SystemExit: 4"),
        ("interrupt", "KeyboardInterrupt", "KeyboardInterrupt"),
        ("generator", "GeneratorExit", "GeneratorExit"),
    ],
)
async def test_any_error_becomes_words(runner: ChildRunner, kind: str, name: str, message: str) -> None:
    raised = await error_of(runner, kind)
    assert (raised.kind, raised.message) == (name, message)


async def test_an_error_whose_text_fails_still_has_a_text(runner: ChildRunner) -> None:
    raised = await error_of(runner, "wordless")
    assert raised.kind == "Wordless"
    assert raised.message


async def test_stop_iteration_is_an_error_like_any_other(runner: ChildRunner) -> None:
    assert (await error_of(runner, "stop")).kind == "StopIteration"


async def test_a_coroutine_that_exits_fails_and_the_child_lives_on(runner: ChildRunner) -> None:
    outcome = (await run(runner, "exit_async")).outcome
    assert isinstance(outcome, ChildRaised)
    assert (outcome.kind, outcome.message) == ("SystemExit", "SystemExit: 5")
    pid = runner.pid
    await result_of(runner, "add", a=1, b=1)
    assert runner.pid == pid


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("snooze", Snooze("90s")),
        ("retry", Retry("later", after="5m")),
        ("own-retry", Retry("mine", after=7)),
        ("discard", Discard("useless")),
        ("cancel", Cancel("not wanted")),
    ],
)
async def test_a_signal_arrives_with_its_values(runner: ChildRunner, kind: str, expected: Signal) -> None:
    error = (await error_of(runner, kind)).error
    assert type(error) is type(expected)
    assert vars(error) == vars(expected)
    assert str(error) == str(expected)


async def test_an_error_of_ours_arrives_as_itself(runner: ChildRunner) -> None:
    error = (await error_of(runner, "lease")).error
    assert isinstance(error, LeaseLost)
    assert error.job_id == 12


async def test_what_the_task_says_of_an_error_is_told(runner: ChildRunner) -> None:
    assert (await error_of(runner, "never")).is_final
    assert (await error_of(runner, "divide")).policy == 1


async def test_a_payload_that_does_not_fit_is_told_from_an_error_of_the_handler(runner: ChildRunner) -> None:
    outcome = (await run(runner, "add", bad=1)).outcome
    assert isinstance(outcome, ChildRaised)
    assert outcome.is_bad_payload
    assert not (await error_of(runner, "plain")).is_bad_payload


async def test_a_task_that_the_child_does_not_know_fails(runner: ChildRunner) -> None:
    outcome = (await run(runner, "nowhere")).outcome
    assert isinstance(outcome, ChildRaised)
    assert "nowhere" in outcome.message


async def test_a_coroutines_calls_reach_the_worker_and_its_wishes_come_back(runner: ChildRunner, store: Store) -> None:
    end = await runner.run(a_job("report"), handle=store)
    assert end.outcome == ChildReturned("[1,1]")
    assert store.asked == [
        ("progress", {"count": 3, "cursor": "c3", "message": "half \ud800 way"}),
        ("items", {"items": [{"k": 1}, {"k": 2}]}),
    ]
    assert end.again == Again(None, timedelta(minutes=10))
    assert (end.items_crawled, end.items_indexed, end.metadata) == (5, 4, '{"source":"test"}')


async def test_metadata_that_is_no_object_is_kept_as_the_reason(runner: ChildRunner) -> None:
    end = await run(runner, "keep_a_list")
    assert end.outcome == ChildReturned(None)
    assert json.loads(end.metadata or "") == {"error": """metadata: must be a JSON object (got "['a']")"""}


async def test_a_handler_that_sets_nonsense_on_its_context_fails_alone(runner: ChildRunner) -> None:
    outcome = (await run(runner, "wish_oddly")).outcome
    assert isinstance(outcome, ChildRaised)
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_a_functions_calls_reach_the_worker(runner: ChildRunner, store: Store) -> None:
    end = await runner.run(a_job("report_sync"), handle=store)
    assert end.outcome == ChildReturned("[1,1]")
    assert [verb for verb, _ in store.asked] == ["progress", "items"]


async def test_a_function_has_the_main_thread_and_may_run_a_loop_of_its_own(runner: ChildRunner, store: Store) -> None:
    for _ in range(2):
        assert (await runner.run(a_job("run_a_loop"), handle=store)).outcome == ChildReturned("[1,1]")
    assert [verb for verb, _ in store.asked] == ["progress", "items"] * 2


async def test_threads_of_a_function_may_all_ask_at_once(runner: ChildRunner, store: Store) -> None:
    assert (await runner.run(a_job("report_from_threads", threads=8), handle=store)).outcome == ChildReturned("160")
    assert sorted(arguments["count"] for _, arguments in store.asked) == list(range(160))


async def test_a_thread_of_a_coroutine_may_ask(runner: ChildRunner, store: Store) -> None:
    assert (await runner.run(a_job("report_from_a_thread"), handle=store)).outcome == ChildReturned(None)
    assert len(store.asked) == 1


async def test_a_function_that_gives_a_coroutine_has_it_run(runner: ChildRunner, store: Store) -> None:
    assert (await runner.run(a_job("give_coroutine"), handle=store)).outcome == ChildReturned('"later"')
    assert [arguments["count"] for _, arguments in store.asked] == [1, 2]


async def test_a_thread_that_outlives_its_run_can_ask_for_nothing_more(runner: ChildRunner, store: Store) -> None:
    assert (await runner.run(a_job("leave_a_thread"), handle=store)).outcome == ChildReturned(None)
    asked = len(store.asked)
    [words] = await result_of(runner, "late_words")
    assert words in {"the run that asks is over", ""}
    assert len(store.asked) == asked


async def test_a_refused_call_raises_the_same_error_in_the_handler(runner: ChildRunner, store: Store) -> None:
    store.error = LeaseLost(77)
    assert (await runner.run(a_job("report_lost"), handle=store)).outcome == ChildReturned('"lost 77"')
    for error in (StoreUnavailable("no database"), OSError("no database")):
        store.error = error
        outcome = (await runner.run(a_job("report_lost"), handle=store)).outcome
        assert isinstance(outcome, ChildRaised)
        assert "no database" in outcome.message


async def test_a_coroutine_that_would_wait_for_itself_is_told(runner: ChildRunner, store: Store) -> None:
    outcome = (await runner.run(a_job("report_wrongly"), handle=store)).outcome
    assert isinstance(outcome, ChildRaised)
    assert "await progress()" in outcome.message


async def test_a_call_that_is_not_json_is_the_handlers_error(runner: ChildRunner, store: Store) -> None:
    outcome = (await runner.run(a_job("report_odd"), handle=store)).outcome
    assert isinstance(outcome, ChildRaised)
    assert outcome.kind == "InvalidPayload"


async def test_many_calls_at_once_are_all_answered(runner: ChildRunner, store: Store) -> None:
    assert (await runner.run(a_job("report_much", times=1000), handle=store)).outcome == ChildReturned("1000")
    assert len(store.asked) == 1000


async def test_log_lines_of_the_run_are_kept_up_to_a_limit(runner: ChildRunner) -> None:
    few = await run(runner, "log", lines=2)
    assert few.log_excerpt is not None
    assert [line.split()[-2] for line in few.log_excerpt.splitlines()] == ["0", "1"]
    many = await run(runner, "log", lines=2000)
    assert many.log_excerpt is not None
    assert len(many.log_excerpt.encode()) <= 65_536
    assert many.log_excerpt.splitlines()[-1].split()[-2] == "1999"
    assert (await run(runner, "add", a=1, b=1)).log_excerpt is None


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tests.worker.broken_app:app", "the settings are missing"),
        ("tests.worker.no_such:app", "No module named"),
        ("tests.worker.handlers:nothing", "nothing"),
        ("tests.worker.odd_apps:empty", "has no registry"),
        ("tests.worker.odd_apps:failing", "no database pool"),
        ("tests.worker.odd_apps:exiting", "exited with 7"),
        ("nonsense", "module:attribute"),
    ],
)
async def test_a_child_that_cannot_start_says_why(target: str, words: str) -> None:
    runner = ChildRunner(target)
    with pytest.raises(ChildNotStarted, match=words):
        await run(runner, "add", a=1, b=1)
    await runner.close()
    assert list_zombies() == []


async def test_a_child_that_takes_too_long_to_start_is_ended() -> None:
    runner = ChildRunner("tests.worker.odd_apps:hanging", start_timeout=timedelta(milliseconds=200))
    with pytest.raises(ChildNotStarted, match="was not ready"):
        await run(runner, "add", a=1, b=1)
    await runner.close()
    assert list_zombies() == []


async def test_a_child_is_replaced_after_so_many_jobs() -> None:
    runner = ChildRunner(APP, max_jobs=2)
    pids = [(await result_of(runner, "whoami"))["pid"] for _ in range(5)]
    assert pids[0] == pids[1] != pids[2] == pids[3] != pids[4]
    await runner.close()
    assert not any(is_running(pid) for pid in pids)


async def test_a_crash_leaves_other_children_alone(runner: ChildRunner, store: Store) -> None:
    other = ChildRunner(APP)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(other.run(a_job("wait_for_stop"), handle=store))
        await store.started.wait()
        await crash_of(runner, "segfault")
        await crash_of(runner, "signal_self", number=signal.SIGKILL)
        other.stop()
    assert running.result().outcome == ChildReturned('"saw it"')
    await other.close()


async def test_the_users_own_subprocesses_are_not_reaped_by_us(runner: ChildRunner) -> None:
    mine = subprocess.Popen(["true"])  # noqa: ASYNC220 - the kind that we must leave alone
    await crash_of(runner, "leave", code=1)
    assert mine.wait(10) == 0
    theirs = await asyncio.create_subprocess_exec("sh", "-c", "exit 6")
    await crash_of(runner, "leave", code=1)
    assert await theirs.wait() == 6


async def test_somebody_else_reaping_the_child_is_survived(runner: ChildRunner, store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.run(a_job("hang"), handle=store))
        await store.started.wait()
        assert runner.pid is not None
        os.kill(runner.pid, signal.SIGKILL)
        # Either of us may win.
        with contextlib.suppress(ChildProcessError):
            await asyncio.to_thread(os.waitpid, runner.pid, 0)
    assert isinstance(running.result().outcome, Crashed)
    assert await result_of(runner, "add", a=1, b=1) == 2


async def test_two_hundred_jobs_go_through_one_warm_child(runner: ChildRunner) -> None:
    first = await result_of(runner, "whoami")
    started = time.perf_counter()
    for number in range(200):
        assert await result_of(runner, "add", a=number, b=1) == number + 1
    took_us = (time.perf_counter() - started) / 200 * 1e6
    print(f"{took_us:.0f} us per job in a warm child")
    assert await result_of(runner, "whoami") == first
    # Far above what it takes on a machine of our own.
    assert took_us < 20_000


@pytest.mark.parametrize("task", ["hang", "hold_the_gil"])
async def test_a_child_dies_with_its_killed_worker(task: str) -> None:
    child = await _child_of_a_killed_worker(task)
    assert await until(lambda: not is_running(child), "the child to die", within=10) < 1


async def test_a_stopped_child_dies_with_its_killed_worker() -> None:
    child = await _child_of_a_killed_worker("stop_self")
    assert await until(lambda: not is_running(child), "the child to die", within=10) < 1


async def test_what_a_child_started_dies_with_the_killed_worker(tmp_path: Path) -> None:
    child = await _child_of_a_killed_worker("start_and_hang", path=str(tmp_path / "pids"))
    plain, *others = json.loads((tmp_path / "pids").read_text())
    assert await until(lambda: not is_running(child) and not is_running(plain), "the group to die", within=10) < 1
    for pid in others:
        # They left the group, where nothing but a living worker follows them.
        os.kill(pid, signal.SIGKILL)


async def _child_of_a_killed_worker(task: str, **payload: Any) -> int:
    """Kill a worker whose child is at work, and give the child's number."""
    command = (sys.executable, "-m", "tests.worker.doomed_parent", task, json.dumps(payload))
    worker = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    assert worker.stdout is not None
    child = int(await worker.stdout.readline())
    assert is_running(child)
    worker.kill()
    await worker.wait()
    return child


def test_a_job_travels_unchanged() -> None:
    job = a_job("add", a="é")._replace(slot_at=NOON, last_cursor="c")
    assert unpack_job(json.loads(json.dumps(pack_job(job)))) == job

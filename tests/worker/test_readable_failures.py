"""A failed run can be understood from the log, from hooks and by whoever waits for the job."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import islice
from pathlib import Path

import pytest

from tests.worker.rig import Rig
from windlass import JobCancelled, JobFailed, Windlass
from windlass.core.hooks import EndEvent
from windlass.core.ids import job_uuid
from windlass.telemetry import JsonFormatter, TextFormatter
from windlass.worker.context import JobContext


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Collect what a worker logs, as text for people."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(TextFormatter())
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


async def test_the_log_has_type_message_and_the_handlers_own_frames(rig: Rig, lines: io.StringIO) -> None:
    async def pay(order: dict[str, int]) -> int:
        return order["amount"]

    rig.task(pay)
    await rig.start()
    job = await rig.ended(await rig.enqueue("pay", {"order": {}}, max_attempts=1))
    assert job.last_error == "KeyError: 'amount'"
    logged = lines.getvalue()
    [line] = [line for line in logged.splitlines() if "job failed" in line]
    assert "ERROR" in line
    assert f"job_id={job.id} task=pay attempt=1 correlation_id={job_uuid(job.id)}" in line
    assert """error="KeyError: 'amount'" state=failed""" in line
    assert '  |     return order["amount"]' in logged
    assert "slot.py" not in logged


async def test_every_line_of_a_run_carries_its_own_job_also_after_it_was_given_up(rig: Rig, lines: io.StringIO) -> None:
    release = threading.Event()
    log = logging.getLogger("shop")

    def slow(ctx: JobContext) -> None:
        try:
            release.wait(10)
        finally:
            log.warning("late word of %d", ctx.job_id)

    async def quick() -> None: ...

    rig.task(slow, timeout=timedelta(milliseconds=200))
    rig.task(quick)
    await rig.start(pools="*=1", most_lost_threads=10)
    given_up = await rig.enqueue("slow", max_attempts=1)
    await rig.ended(given_up)
    await rig.ended(await rig.enqueue("quick"))
    release.set()

    async def is_said() -> bool:
        return "late word" in lines.getvalue()

    await rig.until(is_said)
    for line in lines.getvalue().splitlines():
        if "late word" in line or "timed out" in line:
            assert f"job_id={given_up} task=slow attempt=1" in line


async def test_a_cancelled_run_logs_its_end(rig: Rig, lines: io.StringIO) -> None:
    begun = asyncio.Event()

    async def patient() -> None:
        begun.set()
        await asyncio.sleep(60)

    rig.task(patient)
    await rig.start()
    job_id = await rig.enqueue("patient")
    await begun.wait()
    await rig.store.cancel([job_id])

    async def is_said() -> bool:
        return "job run stopped" in lines.getvalue()

    await rig.until(is_said)
    [line] = [line for line in lines.getvalue().splitlines() if "job run stopped" in line]
    assert f"job_id={job_id} task=patient attempt=1" in line


async def test_hooks_get_the_exception_itself(rig: Rig) -> None:
    heard: list[EndEvent] = []

    async def broken() -> None:
        raise LookupError("nowhere")

    rig.task(broken)
    rig.hooks.add("fail", heard.append)
    await rig.start()
    await rig.ended(await rig.enqueue("broken", max_attempts=1))
    await rig.stop()
    [event] = heard
    assert isinstance(event.exception, LookupError)
    assert event.error == "LookupError: nowhere"
    assert "raise LookupError" in (event.traceback or "")


async def test_whoever_waits_gets_type_message_and_traceback(url: str) -> None:
    app = Windlass(url)
    app.migrate()

    @app.task(max_attempts=1)
    async def pay(ctx: JobContext, order: dict[str, int]) -> int:
        assert ctx.correlation_id == str(job_uuid(ctx.job_id))
        return order["amount"]

    @app.task
    async def never() -> None: ...

    async with app, app.working():
        made = await pay.enqueue(order={})
        with pytest.raises(JobFailed, match=r"job \d+ failed: KeyError: 'amount'") as failed:
            await app.wait(made, timeout=10)
        later = await never.using(delay="1h").enqueue()
        await app.cancel(later, "changed mind")
        with pytest.raises(JobCancelled, match="changed mind"):
            await app.wait(later, timeout=10)
    assert 'order["amount"]' in (failed.value.traceback or "")
    assert isinstance(failed.value.__cause__, KeyError)
    assert failed.value.__cause__.args == ("amount",)


class Odd(Exception):
    """An error of the application."""


class Numbered(Exception):
    """An error that is not made of its message."""

    def __init__(self, number: int) -> None:
        super().__init__(f"number {number}")


class Shop:
    """Has an error that is called as one of Python's."""

    class LookupError(Exception):  # noqa: A001 - what this is about
        """Not Python's."""


def open_nothing() -> None:
    Path("/nowhere/at all").read_text("utf-8")


def raise_odd() -> None:
    raise Odd("first\nsecond: third") from KeyError("x")


def raise_odd_without_text() -> None:
    raise Odd


def raise_numbered() -> None:
    raise Numbered(7)


def raise_namesake() -> None:
    raise Shop.LookupError("gone")


def raise_local() -> None:
    class LookupError(Exception):  # noqa: A001 - what this is about
        pass

    raise LookupError("gone")


def misspell() -> None:
    Path("/").nmae  # type: ignore[attr-defined]  # noqa: B018 - the slip that Python comments on


@pytest.mark.parametrize(
    ("function", "kind", "arguments"),
    [
        (open_nothing, FileNotFoundError, (2, "No such file or directory")),
        (raise_odd, Odd, ("first\nsecond: third",)),
        (raise_odd_without_text, Odd, ()),
        (raise_numbered, None, ()),
        (raise_namesake, Shop.LookupError, ("gone",)),
        (raise_local, None, ()),
        (misspell, AttributeError, ("'PosixPath' object has no attribute 'nmae'",)),
    ],
)
async def test_whoever_waits_gets_the_error_itself_where_it_can_be_made_again(
    url: str, function: Callable[[], None], kind: type[Exception] | None, arguments: tuple[object, ...]
) -> None:
    app = Windlass(url)
    app.migrate()
    task = app.task(max_attempts=1)(function)
    async with app, app.working():
        with pytest.raises(JobFailed) as failed:
            await app.wait(await task.enqueue(), timeout=20)
    cause = failed.value.__cause__
    assert (None if cause is None else type(cause)) is kind
    assert cause is None or cause.args == arguments
    if isinstance(cause, OSError):
        assert (cause.errno, cause.filename) == (2, "/nowhere/at all")


def test_no_module_is_imported_to_make_an_error_again() -> None:
    failed = JobFailed(7, "failed", "Antigravity: up", "antigravity.Antigravity: up\n")
    assert (failed.__cause__, "antigravity" in sys.modules) == (None, False)


def test_a_text_in_a_log_line_cannot_pass_for_another_line() -> None:
    record = logging.makeLogRecord(
        {"msg": "paid\n2026-01-01 ERROR \u202eforged\x1b[2J", "levelname": "INFO", "note": "a\u2028b", "task": "c\x00"}
    )
    [line] = TextFormatter().format(record).splitlines()
    assert "\\n2026-01-01" in line
    assert line.isprintable()
    assert len(JsonFormatter().format(record).splitlines()) == 1


async def test_a_text_in_the_log_of_a_run_cannot_pass_for_another_line(rig: Rig) -> None:
    log = logging.getLogger("shop")

    async def pay() -> None:
        log.warning("paid\n2026-01-01 00:00:00,000 ERROR shop: forged\u2028again")
        try:
            raise_odd()
        except Odd:
            log.exception("odd")

    rig.task(pay)
    await rig.start()
    job_id = await rig.enqueue("pay")
    await rig.ended(job_id)
    [run] = await rig.executions(job_id)
    first, second, *trace = (run.log_excerpt or "").splitlines()
    assert first.endswith("WARNING shop: paid\\n2026-01-01 00:00:00,000 ERROR shop: forged\\u2028again")
    assert second.endswith("ERROR shop: odd")
    assert trace[0] == "  | KeyError: 'x'"
    assert trace[-2].endswith("Odd: first")
    assert {line[:4] for line in trace} == {"  | "}
    assert trace[-1] == "  | second: third"


def test_a_child_process_logs_as_its_worker_does(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import logging\n"
        "from windlass import Windlass\n"
        "app = Windlass('sqlite:///shop.db')\n"
        "@app.task(isolation='process', max_attempts=1)\n"
        "def pay(n: int) -> None:\n"
        "    logging.getLogger('shop').warning('paying %d', n)\n"
    )
    subprocess.run([sys.executable, "-c", "from shop import pay; pay.enqueue_sync(n=7)"], cwd=tmp_path, check=True, timeout=30)
    command = [sys.executable, "-m", "windlass", "worker", "shop:app", "--alone", "--json-logs"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as worker:
        assert worker.stderr is not None
        try:
            [line] = islice((line for line in worker.stderr if "paying" in line), 1)
        finally:
            worker.terminate()
    found = json.loads(line)
    assert (found["message"], found["task"], found["attempt"], found["level"]) == ("paying 7", "pay", 1, "warning")

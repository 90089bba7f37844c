"""An application whose tasks do to their process what handlers do at their worst."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from windlass.core.current import current_job
from windlass.core.payload import decode
from windlass.core.retry import RetryPolicy
from windlass.core.signals import Cancel, Discard, Retry, Snooze
from windlass.core.task import Isolation, Registry, TaskSpec
from windlass.errors import InvalidPayload, LeaseLost
from windlass.worker.context import JobContext

QUICK = RetryPolicy(base=timedelta(seconds=1), cap=timedelta(seconds=1))
SLOW = RetryPolicy(base=timedelta(minutes=1), cap=timedelta(minutes=1))


def _arguments(text: str) -> Mapping[str, Any]:
    values = decode(text)
    if "bad" in values:
        raise InvalidPayload("bad", values["bad"], "is not a known argument")
    return dict(values)


class Application:
    def __init__(self) -> None:
        self.registry = Registry()
        self.opened = 0

    def task(self, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            first = next(iter(function.__annotations__), None)
            spec = TaskSpec(
                name=function.__name__,
                function=function,
                arguments=_arguments,
                takes_context=first == "ctx",
                isolation=Isolation.PROCESS,
                **options,
            )
            self.registry.add(spec)
            return function

        return register

    @asynccontextmanager
    async def open_state(self) -> AsyncIterator[dict[str, Any]]:
        self.opened += 1
        yield {"opened": self.opened, "loop": id(asyncio.get_running_loop())}
        if path := os.environ.get("WINDLASS_TEST_LEFT"):
            Path(path).write_text("left")  # noqa: ASYNC240 - nothing else runs any more


app = Application()
task = app.task


@task()
def add(a: int, b: int) -> int:
    return a + b


@task()
async def add_async(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@task()
def whoami(ctx: JobContext) -> dict[str, Any]:
    now = current_job()
    return {"pid": os.getpid(), "job": ctx.job_id, "current": now and now.id, "opened": ctx.state["opened"]}


@task()
async def whose_loop(ctx: JobContext) -> bool:
    return bool(ctx.state["loop"] == id(asyncio.get_running_loop()))


@task()
def segfault() -> None:
    ctypes.string_at(0)


@task()
def leave(code: int) -> None:
    os._exit(code)


@task()
def signal_self(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(60)


@task()
def stop_self(ctx: JobContext) -> None:
    ctx.progress_sync(message="started")
    os.kill(os.getpid(), signal.SIGSTOP)


@task()
def cut_the_wire() -> None:
    """Close every descriptor but the standard ones, the worker's socket among them."""
    os.closerange(3, 256)
    time.sleep(300)


@task()
def talk_nonsense() -> None:
    """Write to the worker's socket."""
    for path in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            socket.socket(fileno=os.dup(int(path.name))).send(b"\x7f\0\0\0 not a message")
    time.sleep(300)


@task()
def allocate() -> None:
    held = []
    while True:
        held.append(bytearray(8 * 2**20))
        for page in range(0, len(held[-1]), 4096):
            held[-1][page] = 1


@task()
def hold(megabytes: int) -> int:
    return len(b"x" * (megabytes * 2**20))


@task()
def start_and_hang(ctx: JobContext, path: str) -> None:
    """Leave a child, one in a session of its own, one whose parent is gone, and one with a clean environment; then hang."""
    plain = _sleep()
    detached = _sleep(start_new_session=True)
    orphan = int(subprocess.check_output(["sh", "-c", "setsid sleep 300 > /dev/null 2>&1 & echo $!"]))
    clean = _sleep(start_new_session=True, env={})
    Path(path).write_text(json.dumps([plain.pid, detached.pid, orphan, clean.pid]))
    ctx.progress_sync(message="started")
    time.sleep(300)


@task()
def daemonize_and_hang(ctx: JobContext, path: str) -> None:
    """Leave a daemon as daemons are made, with an emptied environment; then hang."""
    _daemonize(path)
    ctx.progress_sync(message="started")
    time.sleep(300)


@task()
def daemonize(path: str) -> None:
    _daemonize(path)


_DAEMON = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(f"[{os.getpid()}]")
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.execve("/bin/sleep", ["sleep", "300"], {})
"""


def _daemonize(path: str) -> None:
    subprocess.run([sys.executable, "-c", _DAEMON, path], env={}, check=True, close_fds=True)
    while not Path(path).exists():
        time.sleep(0.01)


def _sleep(**options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)


@task()
def start_and_crash(path: str) -> None:
    Path(path).write_text(json.dumps([_sleep().pid, _sleep(start_new_session=True).pid]))
    os._exit(3)


@task()
def fork_and_return() -> int:
    return os.fork() and 1


@task()
async def fork_in_coroutine() -> int:
    forked = os.fork()
    await asyncio.sleep(0)
    return forked and 1


@task()
def hold_the_gil(ctx: JobContext) -> None:
    ctx.progress_sync(message="started")
    ctypes.PyDLL(None).sleep(300)


@task()
def chat() -> None:
    print("said on stdout")
    sys.stderr.write("said on stderr\n")
    os.write(1, b"\0\0\0\1x")


@task()
def give(kind: str) -> Any:
    return {"huge": "x" * 3_000_000, "large": "é" * 500_000, "object": object(), "none": None, "set": {1}}[kind]


class Unpicklable(Exception):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")
        self.held = lambda: one

    def __reduce__(self) -> Any:
        raise TypeError("no")


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class OwnRetry(Retry):
    pass


@task(never_retry=(LookupError,), retry_by_error=((OSError, QUICK), (ArithmeticError, SLOW)))
def fail(kind: str) -> None:
    errors: dict[str, BaseException] = {
        "plain": ValueError("it went wrong"),
        "empty": ValueError(),
        "unpicklable": Unpicklable(1, 2),
        "wordless": Wordless(),
        "exit": SystemExit(4),
        "interrupt": KeyboardInterrupt(),
        "generator": GeneratorExit(),
        "stop": StopIteration(),
        "never": KeyError("k"),
        "divide": ZeroDivisionError("by zero"),
        "snooze": Snooze("90s"),
        "retry": Retry("later", after="5m"),
        "own-retry": OwnRetry("mine", after=7),
        "discard": Discard("useless"),
        "cancel": Cancel("not wanted"),
        "lease": LeaseLost(12),
    }
    raise errors[kind]


@task()
async def exit_async() -> None:
    raise SystemExit(5)


@task()
async def report(ctx: JobContext) -> list[int]:
    await ctx.progress(3, cursor="c3", message="half \ud800 way")
    added = await ctx.items([{"k": 1}, {"k": 2}])
    ctx.items_crawled = 5
    ctx.items_indexed = 4
    ctx.metadata = {"source": "test"}
    ctx.run_again(after="10m")
    return list(added)


@task()
def keep_a_list(ctx: JobContext) -> None:
    ctx.metadata = ["a"]  # type: ignore[assignment]


@task()
def wish_oddly(ctx: JobContext) -> None:
    ctx.items_crawled = "many"  # type: ignore[assignment]
    ctx.metadata = {"odd": object()}
    ctx.again = 5  # type: ignore[assignment]


@task()
def report_sync(ctx: JobContext) -> list[int]:
    ctx.progress_sync(3, cursor="c3", message="half way")
    return list(ctx.items_sync([{"k": 1}, {"k": 2}]))


@task()
def run_a_loop(ctx: JobContext) -> list[int]:
    """Do what functions do that call into asynchronous libraries, from the main thread."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)

    async def inner() -> list[int]:
        await ctx.progress(1)
        return list(await ctx.items([{"k": 1}, {"k": 2}]))

    return asyncio.run(inner())


@task()
def report_from_threads(ctx: JobContext, threads: int) -> int:
    with ThreadPoolExecutor(threads) as pool:
        return sum(1 for _ in pool.map(ctx.progress_sync, range(threads * 20)))


@task()
async def report_from_a_thread(ctx: JobContext) -> None:
    await asyncio.to_thread(ctx.progress_sync, 1)


@task()
def give_coroutine(ctx: JobContext) -> Any:
    ctx.progress_sync(1)

    async def later() -> str:
        await ctx.progress(2)
        return "later"

    return later()


LATE: list[str] = []


@task()
def leave_a_thread(ctx: JobContext) -> None:
    def go_on() -> None:
        while ctx.cancelled is False:
            try:
                ctx.progress_sync(1)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                LATE.append(str(error))
                return

    threading.Thread(target=go_on, daemon=True).start()


@task()
def late_words() -> list[str]:
    until = time.monotonic() + 30
    while not LATE and time.monotonic() < until:
        time.sleep(0.005)
    return LATE


@task()
def report_lost(ctx: JobContext) -> str:
    try:
        ctx.progress_sync(1)
    except LeaseLost as error:
        return f"lost {error.job_id}"
    return "kept"


@task()
async def report_wrongly(ctx: JobContext) -> None:
    ctx.progress_sync(1)


@task()
async def report_much(ctx: JobContext, times: int) -> int:
    await asyncio.gather(*(ctx.progress(number) for number in range(times)))
    return times


@task()
def report_odd(ctx: JobContext) -> None:
    ctx.items_sync([{"k": object()}])


@task()
def wait_for_stop(ctx: JobContext) -> str:
    ctx.progress_sync(message="started")
    while not ctx.cancelled:
        time.sleep(0.005)
    return "saw it"


@task()
async def wait_for_cancel(ctx: JobContext) -> None:
    await ctx.progress(message="started")
    await asyncio.sleep(300)


@task()
def log(lines: int) -> None:
    for number in range(lines):
        logging.getLogger("tests.noise").warning("line %d %s", number, "x" * 100)


@task()
def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


@task()
def hang(ctx: JobContext) -> None:
    ctx.progress_sync(message="started")
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP})
    while True:
        time.sleep(1)

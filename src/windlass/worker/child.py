"""The process that runs jobs of `process` isolation: imports the application once, then does what its worker sends."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import inspect
import logging
import os
import signal
import socket
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import copy_context
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.clock import steady
from windlass.core.current import RunningJob, current_run
from windlass.core.job import Claimed
from windlass.core.outcome import TRACE_LIMIT
from windlass.core.payload import sanitise_text
from windlass.core.task import Registry, TaskSpec
from windlass.errors import ConfigError, InvalidPayload
from windlass.telemetry import configure_like_parent
from windlass.worker.context import JobContext
from windlass.worker.descendants import adopt_orphans, kill_own_descendants
from windlass.worker.frames import CHUNK, Channel, Frames, encode_frame
from windlass.worker.lifeline import hold_lifeline
from windlass.worker.logs import LogCapture, LogExcerpt
from windlass.worker.meter import Meter
from windlass.worker.middleware import wrapped
from windlass.worker.pipe_link import PipeLink
from windlass.worker.run_tasks import end_tasks, tracked_tasks
from windlass.worker.wire import pack_bare_end, pack_end, pack_raised, pack_returned, unpack_job

if TYPE_CHECKING:
    from windlass.otel import Tracing


class Application(NamedTuple):
    """What a target must offer."""

    registry: Registry
    open_state: Callable[[], AbstractAsyncContextManager[Any]] | None
    tracing: Tracing | None = None


def load(target: str) -> Application:
    """Import `module:attribute`."""
    module, colon, path = target.partition(":")
    if not (module and colon and path):
        raise ConfigError(f"the application is named as module:attribute, not {target!r}")
    found: Any = importlib.import_module(module)
    for name in path.split("."):
        found = getattr(found, name)
    if not isinstance(getattr(found, "registry", None), Registry):
        raise ConfigError(f"{target} has no registry of tasks")
    registry = wrapped(found.registry, getattr(found, "middlewares", ()))
    return Application(registry, getattr(found, "open_state", None), getattr(found, "tracing", None))


class ChildServer:
    """Runs one job after the other: coroutines on this process's event loop, functions in the main thread beside it."""

    def __init__(self, application: Application, end: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        """Listen on the worker's socket."""
        self._application = application
        self._loop = loop
        self._pid = os.getpid()
        self._channel = Channel(end, loop, received=self._receive, lost=_die)
        # A forked copy must never answer in our place, nor keep the socket open.
        os.register_at_fork(after_in_child=self._channel.disown)
        self._goodbye = asyncio.Event()
        self._log = LogExcerpt()
        self._meter = Meter()
        self._state: Any = None
        self._number = 0
        self._link = PipeLink(loop, self._channel)
        self._function: Callable[[], None] | None = None
        self._coroutine: asyncio.Task[None] | None = None
        self._should_cancel = False
        self._cancellable: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        """What the handler has started on the event loop."""

    def serve(self) -> None:
        """Run what comes until the worker sends the end."""
        life = self._loop.create_task(self._live())
        life.add_done_callback(lambda _: self._loop.stop())
        with tracked_tasks(self._loop):
            while not life.done():
                self._loop.run_forever()
                function, self._function = self._function, None
                if function is not None:
                    self._link.read_here(is_reading=True)
                    # Every job in a context of its own, as tasks are.
                    copy_context().run(function)
        life.result()

    async def _live(self) -> None:
        """Hold the application's lifespan open, in one task as its task groups and cancel scopes need it."""
        async with contextlib.AsyncExitStack() as stack:
            try:
                self._state = await stack.enter_async_context((self._application.open_state or _no_lifespan)())
            except BaseException as error:
                self._say("failed", _in_words(error))
                raise
            # One run at a time, so that whatever is logged belongs to it, from threads of the handler too.
            _prepare_logs(LogCapture(lambda: self._log))
            self._say("ready", list(self._meter.read()))
            await self._goodbye.wait()
            if self._coroutine is not None:
                await self._coroutine

    def _say(self, *message: Any) -> None:
        self._channel.send(encode_frame(message))

    def _receive(self, message: Any) -> None:
        match message:
            case ["run", number, _, start_by] if steady() >= start_by:
                # The lease may have ended by now: this process, or the message, may have been delayed.
                self._say("late", number)
            case ["run", number, fields, _]:
                self._start(number, unpack_job(fields))
            case ["answer", number, answer, refusal]:
                self._link.answer(number, answer, refusal)
            case ["stop", number, is_cancelling]:
                self._stop(number, is_cancelling=is_cancelling)
            case ["bye"]:
                self._goodbye.set()

    def _start(self, number: int, job: Claimed) -> None:
        self._number = number
        self._link = PipeLink(self._loop, self._channel)
        self._should_cancel = False
        self._log = LogExcerpt()
        self._tasks = set()
        self._meter.start()
        context = JobContext(job, self._link, self._state)
        spec = self._application.registry.get(job.task)
        if spec is None:
            error = ConfigError(f"the child process has no task named {job.task!r}")
            self._end(pack_raised(error, None), context)
        elif _is_coroutine_function(spec.function):
            self._coroutine = self._loop.create_task(self._run_coroutine(spec, job, context))
        else:
            self._function = partial(self._run_function, spec, job, context)
            self._loop.stop()

    def _stop(self, number: int, *, is_cancelling: bool) -> None:
        # It may be about a run that has ended meanwhile.
        if number == self._number:
            self._link.should_stop = True
            self._should_cancel = is_cancelling
            if is_cancelling and self._cancellable is not None:
                self._cancellable.cancel()

    def _run_function(self, spec: TaskSpec, job: Claimed, context: JobContext) -> None:
        try:
            value = self._bind(spec, job, context)()
        except BaseException as error:  # noqa: BLE001 - whatever a handler raises is its failure, also SystemExit
            self._leave_if_forked()
            self._end(_pack_failure(error, spec), context)
            return
        self._leave_if_forked()
        if inspect.isawaitable(value):
            self._link.read_here(is_reading=False)
            self._coroutine = self._loop.create_task(self._finish(value, spec, context))
        else:
            self._end(pack_returned(value), context)

    async def _run_coroutine(self, spec: TaskSpec, job: Claimed, context: JobContext) -> None:
        try:
            coroutine = self._bind(spec, job, context)()
        except BaseException as error:  # noqa: BLE001 - as above
            self._end(_pack_failure(error, spec), context)
        else:
            await self._finish(coroutine, spec, context)

    def _bind(self, spec: TaskSpec, job: Claimed, context: JobContext) -> Callable[[], Any]:
        current_run.set(RunningJob(job))
        if self._application.tracing is not None:
            self._application.tracing.enter(job)
        try:
            arguments = spec.arguments(job.payload)
        except InvalidPayload as error:
            raise _Unreadable from error
        return partial(spec.function, context, **arguments) if spec.takes_context else partial(spec.function, **arguments)

    async def _finish(self, coroutine: Awaitable[Any], spec: TaskSpec, context: JobContext) -> None:
        if (run := current_run.get()) is not None:
            run.tasks = self._tasks
        self._cancellable = task = asyncio.current_task()
        if self._should_cancel and task is not None:
            task.cancel()
        try:
            outcome = pack_returned(await coroutine)
        except BaseException as error:  # noqa: BLE001 - as above
            outcome = _pack_failure(error, spec)
        finally:
            self._cancellable = None
            self._leave_if_forked()
        self._end(outcome, context)

    def _end(self, outcome: list[Any], context: JobContext) -> None:
        self._link.close()
        end_tasks(self._tasks)
        _flush_output()
        log, cost = self._log.text(), self._meter.read()
        try:
            self._say("end", self._number, pack_end(outcome, context, log, cost))
        except Exception as error:  # noqa: BLE001 - a handler may have set anything on its context
            self._say("end", self._number, pack_bare_end(pack_raised(error, None), log, cost))

    def _leave_if_forked(self) -> None:
        """End a copy that a handler forked and that came back from the handler as if it were us."""
        if os.getpid() != self._pid:
            os._exit(0)


class _Unreadable(Exception):
    """Marks an InvalidPayload that came before the handler was called."""


def _pack_failure(error: BaseException, spec: TaskSpec) -> list[Any]:
    if isinstance(error, _Unreadable) and error.__cause__ is not None:
        return pack_raised(error.__cause__, spec, is_bad_payload=True)
    return pack_raised(error, spec, is_cancelled=isinstance(error, asyncio.CancelledError))


@lru_cache(maxsize=4096)
def _is_coroutine_function(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function)


def _prepare_logs(capture: LogCapture) -> None:
    """Capture what handlers log; an application that has not set logging up has it go to the worker's stderr."""
    root = logging.getLogger()
    if not root.handlers and not configure_like_parent():
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    root.addHandler(capture)


def _flush_output() -> None:
    """Show what a handler printed now: a later kill would lose it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def _die(_why: Exception) -> None:
    """End with all that we started: the worker is gone."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


@asynccontextmanager
async def _no_lifespan() -> AsyncIterator[None]:
    yield None


def _in_words(error: BaseException) -> str:
    return sanitise_text("".join(traceback.format_exception(error)), TRACE_LIMIT)


def _load_or_tell(target: str, end: socket.socket) -> Application:
    try:
        sys.path += [entry for entry in _read_path(end) if entry not in sys.path]
        return load(target)
    except BaseException as error:
        # The loop is not running yet, so that an application may run one of its own while it is imported.
        end.sendall(encode_frame(["failed", _in_words(error)]))
        raise


def _read_path(end: socket.socket) -> list[str]:
    """Read where the worker imports from: it may know places that the environment does not name."""
    frames = Frames()
    while not (messages := frames.feed(end.recv(CHUNK) or _parting())):
        pass
    [path] = messages
    return list(path)


def _parting() -> bytes:
    raise EOFError("the worker went away")


def main() -> None:
    """Serve the worker that started us: `child <target> <socket> <lifeline> <worker's pid>`."""
    target, socket_fd, lifeline_fd, parent = sys.argv[1:]
    pid = os.getpid()
    hold_lifeline(int(lifeline_fd), parent=int(parent))
    adopt_orphans()
    end = socket.socket(fileno=int(socket_fd))
    end.set_inheritable(False)
    try:
        application = _load_or_tell(target, end)
        with asyncio.Runner() as runner:
            ChildServer(application, end, runner.get_loop()).serve()
    except BaseException:  # noqa: BLE001 - reported to the worker already
        traceback.print_exc()
        sys.exit(1)
    finally:
        # A copy that a handler forked has the same mark, and would end us.
        if os.getpid() == pid:
            kill_own_descendants()


if __name__ == "__main__":
    main()

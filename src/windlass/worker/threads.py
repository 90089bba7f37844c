"""Threads that run handlers which are plain functions, one for each slot, and can be given up."""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from windlass.errors import WindlassError

T = TypeVar("T")


class Abandoned(WindlassError):
    """The slot gave up on the call; what it may still return is dropped."""


class NoThread(WindlassError):
    """The system starts no thread now: it lacks memory or process numbers, which is no job's fault."""


class _Interrupt(BaseException):
    """Ends an abandoned handler. A BaseException, so that a handler's own `except Exception` does not swallow it."""


class _Call(NamedTuple):
    """A function on its way to the thread, and where its end goes."""

    function: Callable[[], Any]
    context: Context
    loop: asyncio.AbstractEventLoop
    end: asyncio.Future[_CallEnd]


class _CallEnd(NamedTuple):
    """How a call ended."""

    value: Any
    error: BaseException | None


class ThreadCount:
    """How many abandoned threads still run; a worker that has lost many should be replaced."""

    def __init__(self) -> None:
        """Start with none."""
        self._lost: list[threading.Thread] = []

    def add(self, thread: threading.Thread) -> None:
        """Count a thread until it ends."""
        self._lost = [lost for lost in self._lost if lost.is_alive()]
        self._lost.append(thread)

    @property
    def alive(self) -> int:
        """Those that have not ended yet."""
        return sum(lost.is_alive() for lost in self._lost)


class SlotThread:
    """A daemon thread for one slot: started by the first call, kept for the next, replaced once it is abandoned.

    Everything but the functions it is given happens on the event loop's thread. A daemon, so that a handler
    that never comes back cannot keep the process from ending.
    """

    def __init__(self, name: str = "windlass-slot", lost: ThreadCount | None = None) -> None:
        """Name the thread for debuggers; `lost` counts those it has to give up."""
        self._name = name
        self._lost = ThreadCount() if lost is None else lost
        self._thread: _InboxThread | None = None
        self._end: asyncio.Future[_CallEnd] | None = None

    async def run(self, function: Callable[[], T]) -> T:
        """Run a function in the thread; returns or raises what it does, whatever that is.

        Raises NoThread when none can be started, and Abandoned when `abandon` comes first. Cancelling the caller abandons the
        thread too. The one error that changes on its way is StopIteration: a coroutine cannot raise it, so Python makes it a
        RuntimeError.
        """
        if self._end is not None:
            raise RuntimeError(f"thread {self._name} runs one call at a time")
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = _started(self._name)
        self._end = awaited = loop.create_future()
        self._thread.calls.put(_Call(function, copy_context(), loop, awaited))
        try:
            value, error = await awaited
        except asyncio.CancelledError:
            self._give_up()
            raise
        finally:
            self._end = None
        if error is not None:
            try:
                raise error
            finally:
                # The error's traceback holds this frame, which would hold the error.
                del error
        return value  # type: ignore[no-any-return]  # the thread's queue does not know T

    def abandon(self) -> None:
        """Release the caller of `run` now; the thread ends when its function does, and the next call gets a new one.

        The function is interrupted by an exception, at best: Python raises it between two bytecodes, so that a
        loop in Python ends, but a call into C (a sleep, a read, a lock) ends only when it comes back, and a bare
        `except:` can swallow it. Does nothing when no call is under way.
        """
        if self._end is not None and not self._end.done():
            self._end.set_exception(Abandoned(f"thread {self._name} was given up while its function still ran"))
            self._give_up()

    def close(self) -> None:
        """Let the thread end once it is idle."""
        if self._thread is not None:
            self._thread.calls.put(None)
            self._thread = None

    def _give_up(self) -> None:
        if self._thread is not None:
            self._lost.add(self._thread.thread)
            self._thread.interrupt()
            self.close()


class _InboxThread:
    """One thread and its inbox; `None` in the inbox ends it."""

    def __init__(self, name: str) -> None:
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_busy = False
        self.thread = threading.Thread(target=self._main, name=name, daemon=True)
        self.thread.start()

    def interrupt(self) -> None:
        """Raise in the running function; called once at most, just before the thread is asked to end."""
        with self._lock:
            # Asked under the lock: an idle thread may be gone the next moment, and its number may be another's.
            if self._is_busy and self.thread.ident is not None:
                number = ctypes.c_ulong(self.thread.ident)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(_Interrupt))

    def _main(self) -> None:
        try:
            while (call := self.calls.get()) is not None:
                with self._lock:
                    self._is_busy = True
                end = _ran(call)
                with self._lock:
                    self._is_busy = False
                _deliver(call, end)
                # Else an idle thread would keep the last job's arguments and result alive.
                del call, end
        except _Interrupt:
            # It came between the function's end and the lock: this thread is not waited for any more.
            return


def _started(name: str) -> _InboxThread:
    try:
        return _InboxThread(name)
    except RuntimeError as error:
        raise NoThread(f"no thread for functions can be started: {error}") from error


def _ran(call: _Call) -> _CallEnd:
    try:
        return _CallEnd(call.context.run(call.function), None)
    except BaseException as raised:  # noqa: BLE001 - a handler's SystemExit is its failure, not the thread's end
        return _CallEnd(None, raised)


def _deliver(call: _Call, end: _CallEnd) -> None:
    try:
        call.loop.call_soon_threadsafe(_settle, call.end, end)
    except RuntimeError:
        # The loop is closed: no receiver is left.
        return


def _settle(awaited: asyncio.Future[_CallEnd], end: _CallEnd) -> None:
    if not awaited.done():
        awaited.set_result(end)

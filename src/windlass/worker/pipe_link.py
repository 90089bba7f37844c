"""The link of a handler in a child process to its worker."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from windlass.errors import InvalidPayload, WindlassError
from windlass.worker.frames import BadFrame, Channel, encode_frame
from windlass.worker.wire import unpack_error

# How long a wait for an answer may miss that another thread has read it.
_PATIENCE_S = 0.05


class PipeLink:
    """How a handler in a child reaches the store: the worker is asked and answers.

    While a coroutine runs, the event loop reads the answers. While a function runs, the loop stands still, and the call that
    waits or asks reads the socket for itself: so the function has the main thread, and no thread is woken for a job.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, channel: Channel) -> None:
        """Ask through `channel`, which lives on `loop`."""
        self._loop = loop
        self._channel = channel
        self._loop_thread = threading.get_ident()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._is_reading = False
        self._is_over = False
        self.should_stop = False

    @property
    def is_stopping(self) -> bool:
        """Whether the worker asked the run to end."""
        if self._is_reading and not self.should_stop:
            self._read()
        return self.should_stop

    async def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask from a coroutine, on whatever loop it runs."""
        future = self._ask(verb, arguments)
        if self._is_reading:
            return await asyncio.to_thread(self._wait, future)
        return await asyncio.wrap_future(future)

    def call_sync(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """Ask from a function, blocking."""
        if not self._is_reading and threading.get_ident() == self._loop_thread:
            raise RuntimeError(f"a coroutine must await {verb}() in place of calling {verb}_sync(): it would wait for ever")
        return self._wait(self._ask(verb, arguments))

    def answer(self, number: int, answer: Any, refusal: list[Any] | None) -> None:
        """Pass the worker's answer to the call that waits for it."""
        future = self._waiting.pop(number, None)
        if future is None or not future.set_running_or_notify_cancel():
            return
        if refusal is None:
            future.set_result(answer)
        else:
            future.set_exception(unpack_error(refusal))

    def read_here(self, *, is_reading: bool) -> None:
        """Set whether this thread reads, because the event loop is blocked; once this returns no other thread of ours reads."""
        with self._lock:
            self._is_reading = is_reading

    def close(self) -> None:
        """Refuse every later call: its answer would go to another job."""
        with self._lock:
            self._is_reading = False
            self._is_over = True
            for future in self._waiting.values():
                future.cancel()

    def _ask(self, verb: str, arguments: Mapping[str, Any]) -> Future[Any]:
        number = next(self._numbers)
        try:
            frame = encode_frame(["call", number, verb, dict(arguments)])
        except BadFrame as error:
            raise InvalidPayload(verb, arguments, str(error)) from error
        future: Future[Any] = Future()
        with self._lock:
            if self._is_over:
                raise WindlassError("the run that asks is over")
            self._waiting[number] = future
            if self._is_reading or threading.get_ident() == self._loop_thread:
                self._channel.send(frame)
                return future
        self._loop.call_soon_threadsafe(self._channel.send, frame)
        return future

    def _wait(self, future: Future[Any]) -> Any:
        while self._is_reading and not future.done():
            self._channel.wait(_PATIENCE_S)
            self._read()
        return future.result()

    def _read(self) -> None:
        with self._lock:
            if self._is_reading:
                self._channel.pump()

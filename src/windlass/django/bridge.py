"""Asks an ASGI application from code that has no event loop, and from views of either kind of server."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from asgiref.sync import sync_to_async

Message = MutableMapping[str, Any]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]
_MOST_WAITING = 16
"""How many parts of an answer may wait for a slow reader."""
_END: Message = {"type": "end"}


class BridgedAnswer:
    """What an ASGI application sends, read from another thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait for messages from the application's loop."""
        self._loop = loop
        self._messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._room = asyncio.Semaphore(_MOST_WAITING)
        self._task: asyncio.Task[None] | None = None
        self.error: BaseException | None = None

    async def run(self, application: Asgi, scope: Message, body: bytes) -> None:
        """Run the application for one request; on its loop."""
        self._task = asyncio.current_task()
        received = False

        async def receive() -> Message:
            nonlocal received
            if received:
                # A further read waits for the client to go away; then this task is cancelled.
                await asyncio.Event().wait()
            received = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            await self._room.acquire()
            self._messages.put(message)

        try:
            await application(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - raised again where the answer is read
            self.error = error
        finally:
            self._messages.put(_END)

    def next(self, timeout: float | None = None) -> Message:
        """Wait for the next message; raises queue.Empty when there is none in time, and what the application raised."""
        message = self._messages.get(timeout=timeout)
        if message is _END:
            if self.error is not None:
                raise self.error
            return _END
        self._loop.call_soon_threadsafe(self._room.release)
        return message

    def parts(self) -> Iterator[bytes]:
        """Read the rest of the body, part by part."""
        while (part := self.part()) is not None:
            yield part

    def part(self, timeout: float | None = None) -> bytes | None:
        """Read one part of the body; None when it is whole."""
        message = self.next(timeout)
        return None if message is _END else message.get("body", b"")

    async def parts_async(self) -> AsyncIterator[bytes]:
        """Do the same without holding up an event loop."""
        try:
            while (part := await sync_to_async(self.part, thread_sensitive=False)()) is not None:
                yield part
        finally:
            self.close()

    def close(self) -> None:
        """Notify the application that the client has disconnected."""
        task = self._task
        if task is not None:
            self._loop.call_soon_threadsafe(task.cancel)


class Bridge:
    """An event loop in a thread of its own, on which an ASGI application runs."""

    def __init__(self, application: Asgi, running: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        """Start the loop, and what the application does beside answering; raises what that raises."""
        self._application = application
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._live, name="windlass-django", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._enter(running), self._loop).result()

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _enter(self, running: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        # Django does not announce that the process ends, so a server's process leaves it open.
        self._context = running()
        await self._context.__aenter__()

    def close(self) -> None:
        """End what the application does, and the thread."""
        asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _leave(self) -> None:
        await self._context.__aexit__(None, None, None)

    def ask(self, scope: Message, body: bytes) -> BridgedAnswer:
        """Begin to answer a request."""
        answer = BridgedAnswer(self._loop)
        asyncio.run_coroutine_threadsafe(answer.run(self._application, scope, body), self._loop)
        return answer

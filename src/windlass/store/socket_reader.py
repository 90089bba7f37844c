"""Waits for a connection's answers with one registration at the event loop, where the driver makes one for every wait."""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING, Any

from psycopg.waiting import Ready, Wait

if TYPE_CHECKING:
    from collections.abc import Generator

_UNASKED = 2
"""How often in a row a socket may be readable without a waiting call: an answer is read in the turn in which it is seen again."""


class SocketReader:
    """Wakes what waits for a socket; to be closed before the socket is."""

    def __init__(self, descriptor: int) -> None:
        """Register nothing before the first wait."""
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN | select.POLLOUT)
        self._waiter: asyncio.Future[None] | None = None
        self._is_registered = False
        self._unasked = 0
        self.is_disturbed = False
        """Whether the server has sent something unasked: mostly that the session is over."""

    async def readable(self) -> Ready:
        """Wait until there is something to read."""
        if not self._is_registered:
            self._loop.add_reader(self._descriptor, self._wake)
            self._is_registered = True
        self._unasked = 0
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        return Ready.R

    def ready_now(self) -> int:
        """Return what can be done without waiting."""
        ready = 0
        for _, events in self._poll.poll(0):
            ready |= (Ready.W if events & select.POLLOUT else 0) | (Ready.R if events & ~select.POLLOUT else 0)
        return ready

    def close(self) -> None:
        """Take the socket off the event loop; a later wait registers it again."""
        if self._is_registered:
            self._is_registered = False
            self._loop.remove_reader(self._descriptor)

    def _wake(self) -> None:
        if self._waiter is None:
            self._unasked += 1
            if self._unasked == _UNASKED:
                # It stays readable for as long as it is not read, and the loop would call here for ever.
                self.is_disturbed = True
                self.close()
        elif not self._waiter.done():
            self._waiter.set_result(None)


class Resumed:
    """A generator of the driver that is under way, for the driver to go on with."""

    def __init__(self, steps: Generator[Any, Any, Any], waits_for: Any, error: BaseException | None) -> None:
        """Go on where `steps` waits for something; an `error` that interrupted it is raised first, once."""
        self._steps = steps
        self._waits_for = waits_for
        self._error = error

    def __next__(self) -> Any:
        """Return what it waits for."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._waits_for

    def send(self, ready: Any) -> Any:
        """Go on."""
        return self._steps.send(ready)


READ = Wait.R

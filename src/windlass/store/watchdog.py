"""Ends the wait for a server that does not answer."""

from __future__ import annotations

import math
import os
import socket
import threading
import time
from contextlib import suppress

_LONGEST_PAUSE_S = 5.0
"""Between two looks while anything is asked: what may take longer than this needs no look of its own when it begins."""


class Wait:
    """One exchange with a server that is under way."""

    __slots__ = ("descriptor", "is_abandoned", "is_cut", "until")

    def __init__(self, descriptor: int, limit_s: float) -> None:
        """Wait on a socket for so long."""
        self.descriptor = descriptor
        self.until = time.monotonic() + limit_s
        self.is_cut = False
        """Whether its socket was shut."""
        self.is_abandoned = False
        """Whether the answer is not wanted any more."""


class Watchdog:
    """A thread that shuts the socket of every exchange that is past its limit.

    The kernel notices only a peer that acknowledges nothing. A proxy, a NAT or a pooler that stops answering acknowledges
    everything, and a wait for it would never end. A socket that is shut down wakes what waits for it, on an event loop or
    in a thread. The thread sleeps until the first limit: no timer is set for a statement, and a blocked event loop does not
    matter.
    """

    def __init__(self) -> None:
        """Start no thread before there is something to watch."""
        self._start()
        os.register_at_fork(after_in_child=self._start)

    def _start(self) -> None:
        self._waits: set[Wait] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._looks_at = math.inf
        """When the thread looks next."""
        self._is_used = False
        """Whether there was an exchange since the last look."""
        self._thread: threading.Thread | None = None

    def enter(self, wait: Wait) -> None:
        """Watch an exchange until it is left."""
        self._waits.add(wait)
        self._is_used = True
        if wait.until < self._looks_at:
            self._look_sooner()

    def shorten(self, wait: Wait, seconds: float) -> None:
        """Wait at most so much longer."""
        wait.until = min(wait.until, time.monotonic() + seconds)
        if wait.until < self._looks_at:
            self._look_sooner()

    def leave(self, wait: Wait) -> None:
        """Watch it no more; afterwards its socket may be closed."""
        try:
            self._waits.remove(wait)
        except KeyError:
            # It is being shut: the number of a socket that we closed now could be another's.
            with self._lock:
                pass

    def _look_sooner(self) -> None:
        with self._lock:
            self._wake.set()
            if self._thread is None:
                thread = threading.Thread(target=self._main, name="windlass-watchdog", daemon=True)
                # No thread is to be had at the end of the interpreter; the next exchange asks again.
                with suppress(RuntimeError):
                    thread.start()
                    self._thread = thread

    def _main(self) -> None:
        while True:
            self._wake.wait(self._plan())
            self._wake.clear()
            now = time.monotonic()
            for wait in self._waits.copy():
                if now >= wait.until:
                    self._cut(wait)

    def _plan(self) -> float | None:
        """Decide how long to sleep; None until the next exchange begins."""
        # Far off until it is known: a caller that enters while this is being decided wakes the thread.
        self._looks_at = math.inf
        was_used, self._is_used = self._is_used, False
        limits = [wait.until for wait in self._waits.copy()]
        if not limits and not was_used:
            return None
        now = time.monotonic()
        self._looks_at = min([now + _LONGEST_PAUSE_S, *limits])
        return max(self._looks_at - now, 0.0)

    def _cut(self, wait: Wait) -> None:
        with self._lock:
            if wait not in self._waits:
                return
            wait.is_cut = True
            with suppress(KeyError):
                self._waits.remove(wait)
                _shut(wait.descriptor)


def _shut(descriptor: int) -> None:
    """Shut a socket down and leave its number to its owner, who closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as duplicate:
        duplicate.shutdown(socket.SHUT_RDWR)


watchdog = Watchdog()
"""The watchdog of this process."""

"""Announces to other processes what has been committed, merged: a burst of commits makes a few announcements."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Collection
from typing import Protocol

from windlass.errors import StoreError

log = logging.getLogger("windlass.store")

_SPACING_S = 0.005
_MOST_OF_COMMITS = 0.1
"""The part of its time that a process may spend in commits that announce themselves."""
_AFTER_FAILURE_S = 1.0
_GIVE_UP_S = 1.0


class Sender(Protocol):
    """Where announcements go; used by one thread."""

    def send(self, words: Collection[str]) -> None:
        """Announce; raises StoreError."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Announcer:
    """A thread that sends at once when it has been idle and then at most every few milliseconds.

    Beside the commits, as PostgreSQL lets transactions that notify commit only one after the other; inside them only now and
    then, the more rarely the longer that takes. The thread starts with the first announcement that needs it.
    """

    def __init__(self, make_sender: Callable[[], Sender]) -> None:
        """Do nothing yet."""
        self._make_sender = make_sender
        self._wake = threading.Condition()
        self._pending: set[str] = set()
        self._is_closing = False
        self._is_resting = False
        self._next_commit_at = 0.0
        self._thread: threading.Thread | None = None
        self._pid = os.getpid()

    def announce(self, words: Collection[str]) -> None:
        """Have this sent soon; never waits, never fails."""
        if not words:
            return
        with self._wake:
            if self._is_closing:
                return
            is_first = not self._pending
            self._pending.update(words)
            if self._thread is None:
                self._thread = self._start()
            elif is_first and not self._is_resting:
                # While it rests it would only find that it still has to: a switch of threads for each commit of a burst.
                self._wake.notify()

    def is_left_to_commit(self) -> bool:
        """Whether a commit should announce itself, which reaches sleepers sooner; its end is noted by `committed`."""
        with self._wake:
            now = time.monotonic()
            if self._pending or now < self._next_commit_at:
                return False
            # Until it is known how long this one takes, no other does the same.
            self._next_commit_at = now + _GIVE_UP_S
            return True

    def committed(self, took_s: float) -> None:
        """Note how long a commit took that announced itself."""
        self._next_commit_at = time.monotonic() + took_s / _MOST_OF_COMMITS

    def _start(self) -> threading.Thread | None:
        thread = threading.Thread(target=self._live, name="windlass-announcer", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # No thread is to be had, or the interpreter is ending; the commit stands, and its caller must get no error.
            log.debug("wake-ups cannot be sent now, polling finds the work: %s", error)
            return None
        # A script that ends right after an enqueue must not lose its last notification.
        atexit.register(self.close)
        return thread

    def close(self) -> None:
        """Send what is left, unless the server cannot be reached."""
        if os.getpid() != self._pid:
            # A forked child has the lock as it was, perhaps held, and no thread to release it.
            return
        with self._wake:
            self._is_closing = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(_GIVE_UP_S)
            atexit.unregister(self.close)

    def _live(self) -> None:
        sender = self._make_sender()
        try:
            while words := self._take():
                self._rest(self._send(sender, words))
        finally:
            sender.close()

    def _take(self) -> set[str]:
        """Wait for announcements and return them; none means the store is closing."""
        with self._wake:
            self._wake.wait_for(lambda: self._pending or self._is_closing)
            words, self._pending = self._pending, set()
            return words

    def _send(self, sender: Sender, words: set[str]) -> float:
        """Send, and return how long to rest afterwards."""
        try:
            sender.send(words)
        except StoreError as error:
            log.debug("wake-ups could not be sent, polling finds the work meanwhile: %s", error)
            self._keep(words)
            return _AFTER_FAILURE_S
        return _SPACING_S

    def _keep(self, words: set[str]) -> None:
        with self._wake:
            # At the end there is no later.
            if not self._is_closing:
                self._pending |= words

    def _rest(self, seconds: float) -> None:
        with self._wake:
            self._is_resting = True
            self._wake.wait_for(lambda: self._is_closing, seconds)
            self._is_resting = False

"""Watches a file for writes with inotify; a look every few milliseconds costs an idle process far more."""

from __future__ import annotations

import ctypes
import logging
import os
import select
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

log = logging.getLogger("windlass.store")

_MODIFIED = 0x2
_GONE = 0x8000
_HEAD = struct.Struct("iIII")
_PAUSE_S = 0.004
"""How long events are left to gather: a file that is written to without pause is not worth a look at each write."""


class FileWatch:
    """Calls `changed` from a thread of its own after a process, perhaps this one, has written to a file.

    The system counts how many of these a user may have: `open_watch` returns None where there is none to be had.
    """

    def __init__(self, inotify: int, changed: Callable[[], None]) -> None:
        """Read the events of `inotify`, which is closed with this."""
        self._inotify = inotify
        self._changed = changed
        self._wanted, self._closing = os.pipe2(os.O_CLOEXEC)
        self.is_alive = True
        """Whether changes are still reported: a file that is removed has none."""
        self._thread = threading.Thread(target=self._listen, name="windlass-file-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        os.close(self._closing)
        self._thread.join()

    def _listen(self) -> None:
        poll = select.poll()
        poll.register(self._inotify, select.POLLIN)
        poll.register(self._wanted, select.POLLIN)
        try:
            while all(descriptor == self._inotify for descriptor, _ in poll.poll()):
                self.is_alive = not self._is_gone()
                self._changed()
                if not self.is_alive:
                    return
                time.sleep(_PAUSE_S)
        finally:
            self.is_alive = False
            os.close(self._inotify)
            os.close(self._wanted)

    def _is_gone(self) -> bool:
        """Read the events that have gathered; returns whether no further one can come."""
        events, at = os.read(self._inotify, 65536), 0
        while at < len(events):
            _, mask, _, name_bytes = _HEAD.unpack_from(events, at)
            if mask & _GONE:
                return True
            at += _HEAD.size + name_bytes
        return False


def open_watch(path: str, changed: Callable[[], None]) -> FileWatch | None:
    """Watch a file; None where the platform cannot, or will not watch another one."""
    if sys.platform != "linux":
        return None
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        inotify = libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, AttributeError):
        return None
    if inotify < 0:
        log.debug("commits of other processes are looked for: inotify has error %d", ctypes.get_errno())
        return None
    if libc.inotify_add_watch(inotify, os.fsencode(path), _MODIFIED) < 0:
        os.close(inotify)
        return None
    return FileWatch(inotify, changed)

"""Which process opened a store."""

from __future__ import annotations

import os

from windlass.errors import StoreUnavailable


class ForkGuard:
    """The process that opened a store: threads and connections do not survive a fork."""

    def __init__(self) -> None:
        """Belong to this process."""
        self._pid = os.getpid()

    def check(self) -> None:
        """Refuse a child that uses what its parent opened; it would wait for ever."""
        if os.getpid() != self._pid:
            raise StoreUnavailable("the store was opened before this process was forked; open it again in the child")

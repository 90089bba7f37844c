"""The signals that tell a command to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable


class Signals:
    """Hears SIGTERM and Ctrl-C from its making on, and tells whoever can stop once that is there."""

    def __init__(self) -> None:
        """Catch them, lest one that comes during the start ends the process in the middle of it."""
        self._heard = 0
        self._actions: tuple[Callable[[], None], Callable[[], None]] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._hear)

    def tell(self, stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        """Call `stop` at the first one, be it past already, and `hurry` at every further one."""
        self._actions = stop, hurry
        if self._heard:
            stop()

    def _hear(self) -> None:
        self._heard += 1
        if self._actions is not None:
            self._actions[self._heard > 1]()

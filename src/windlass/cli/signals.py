"""The signals that end a command."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from datetime import timedelta

from windlass.cli.last_resort import LastResort


class Signals:
    """Catches SIGTERM and Ctrl-C from the start, and passes them on once there is something to stop."""

    def __init__(self, grace: timedelta) -> None:
        """Catch them, so that none that comes during the start ends the process in the middle of it.

        A process that has not ended a few seconds after the grace, or a moment after a second signal, is ended.
        """
        self._heard = 0
        last_resort = LastResort(grace)
        self._actions: tuple[Callable[[], None], Callable[[], None]] | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._hear)
            # The loop is woken by the number alone, whatever the handler; ours works while the loop is blocked.
            signal.signal(number, last_resort.note_signal)

    def call(self, stop: Callable[[], None], hurry: Callable[[], None]) -> None:
        """Call `stop` at the first one, be it past already, and `hurry` at every further one."""
        self._actions = stop, hurry
        if self._heard:
            stop()

    def _hear(self) -> None:
        self._heard += 1
        if self._actions is not None:
            self._actions[self._heard > 1]()

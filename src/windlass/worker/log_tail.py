"""The newest log lines of a run."""

from __future__ import annotations

import logging
from collections import deque

from windlass.core.payload import sanitise_text

LOG_LIMIT = 65_536
"""Bytes of log kept for a run; the newest win."""


class LogTail(logging.Handler):
    """Keeps the newest log lines of the current run."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        self._lines: deque[str] = deque()
        self._size = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, and drop the oldest past the limit."""
        try:
            line = self.format(record)[-LOG_LIMIT:]
        except Exception:  # noqa: BLE001 - a record that cannot be written must not fail the handler that logged it
            self.handleError(record)
            return
        self._lines.append(line)
        self._size += len(line) + 1
        while self._size > LOG_LIMIT and len(self._lines) > 1:
            self._size -= len(self._lines.popleft()) + 1

    def take(self) -> str:
        """Give the lines of the run and start anew."""
        self.acquire()
        try:
            text = "\n".join(self._lines)
            self._lines.clear()
            self._size = 0
        finally:
            self.release()
        return sanitise_text(text, LOG_LIMIT) if text else ""

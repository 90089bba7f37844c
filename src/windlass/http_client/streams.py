"""Events read line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx2

from windlass.core.payload import decode
from windlass.http_client.records import RemoteChange

EVENT_STREAM = "text/event-stream"
_SILENCE_S = 45.0
"""Three times as long as a server says nothing."""


class Lines:
    """Turns the lines of a stream into changes."""

    def __init__(self, read: Callable[[object], RemoteChange]) -> None:
        """Begin between two events."""
        self._read = read
        self._data: list[str] = []

    @staticmethod
    def timeout(connect_s: float) -> httpx2.Timeout:
        """Return how long a stream may be silent."""
        return httpx2.Timeout(connect_s, read=_SILENCE_S)

    def add(self, line: str) -> Iterator[RemoteChange]:
        """Take a line; an empty one ends an event."""
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").strip())
        elif not line and self._data:
            text, self._data = "\n".join(self._data), []
            yield self._read(decode(text, field="event"))

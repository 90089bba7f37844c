"""Events read line by line."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from windlass.core.payload import decode
from windlass.http_client.records import RemoteChange

EVENT_STREAM = "text/event-stream"


class Lines:
    """Turns the lines of a stream into changes."""

    def __init__(self, read: Callable[[object], RemoteChange]) -> None:
        """Begin between two events."""
        self._read = read
        self._data: list[str] = []

    def add(self, line: str) -> Iterator[RemoteChange]:
        """Take a line; an empty one ends an event."""
        if line.startswith("data:"):
            self._data.append(line.removeprefix("data:").strip())
        elif not line and self._data:
            text, self._data = "\n".join(self._data), []
            yield self._read(decode(text, field="event"))

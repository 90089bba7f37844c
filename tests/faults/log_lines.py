"""Finds in the logs of the processes under attack what no fault from outside explains."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import windlass
from windlass.errors import StoreUnavailable

_RECORD = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ([A-Z]+) +(.*)")
_INTERNAL = re.compile(
    r"held without a run|the (last )?end of a run could not be|ended early|what was measured of a run could not be read"
    r"|a slot of pool .* stopped because of an error|a blocked event loop could not be"
    r"|never retrieved|Exception in callback|Exception in thread|Exception ignored in|Unhandled exception|never awaited"
)
_JUDGED_BY_EXECUTIONS = "job failed"
"""What a handler raised is logged with its trace; whether it should have is for the executions to show."""
_CANCELLED_REQUEST = "Exception in ASGI application"
"""A server that is told to stop logs each request that it could not wait for."""
_TRACE = "Traceback (most recent call last)"
_RAISED = re.compile(r"[ |+]*([A-Za-z_][\w.]*)(?::|$)")
_PACKAGE = str(Path(windlass.__file__).parent)
_JOB = re.compile(r"\bjob(?:_id=| )(\d+)")
_LONGEST = 600


class LogEntry(NamedTuple):
    """A line of a log with the lines of its trace."""

    message: str
    trace: tuple[str, ...] = ()

    @property
    def job_id(self) -> int | None:
        found = _JOB.search(self.message)
        return None if found is None else int(found[1])

    @property
    def shows_internal_fault(self) -> bool:
        """Whether the engine met what it should not: an error of its own, not one of a handler or of the database."""
        if _INTERNAL.search(self.message):
            return True
        if self.message.startswith(_JUDGED_BY_EXECUTIONS) or not any(_TRACE in line for line in self.trace):
            return False
        if self.message.startswith(_CANCELLED_REQUEST) and self._raised == "CancelledError":
            return False
        return any(_PACKAGE in line for line in self.trace) and self._raised not in _expected()

    @property
    def _raised(self) -> str:
        """The name of the exception that the trace ends with."""
        found = [match[1] for line in self.trace if (match := _RAISED.match(line)) and "File " not in line]
        names = [name.rpartition(".")[2] for name in found]
        return next((name for name in reversed(names) if name[:1].isupper() and name != "Traceback"), "")

    def __str__(self) -> str:
        """Show the message and the end of the trace."""
        return " / ".join((self.message[:_LONGEST], *self.trace[-3:]))


def read_entries(text: str) -> Iterator[LogEntry]:
    """Split a log; a trace that was written past the log follows its own first line."""
    message, trace = "", list[str]()
    for line in text.splitlines():
        if (record := _RECORD.match(line)) is not None or (_INTERNAL.search(line) and not line.startswith(" ")):
            if message:
                yield LogEntry(message, tuple(trace))
            message, trace = line if record is None else record[2], []
        elif line.startswith("  | "):
            trace.append(line[4:])
        elif _TRACE in line and not any(_TRACE in earlier for earlier in trace) and not _INTERNAL.search(message):
            # Nobody logged it: the interpreter wrote it.
            yield LogEntry(message, tuple(trace))
            message, trace = "an error that nobody caught", [line]
        else:
            trace.append(line)
    yield LogEntry(message, tuple(trace))


def internal_faults(text: str) -> Iterator[LogEntry]:
    """List the entries of a log that show an internal fault."""
    return (entry for entry in read_entries(text) if entry.shows_internal_fault)


def _expected() -> frozenset[str]:
    """Name what faults from outside raise: that the database cannot be reached, in all its forms."""
    names, found = {StoreUnavailable.__name__}, [StoreUnavailable]
    while found:
        kinds = found.pop().__subclasses__()
        found += kinds
        names |= {kind.__name__ for kind in kinds}
    return frozenset(names)

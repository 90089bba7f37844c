"""Keeps the last log lines of a run, to be read beside its execution."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from windlass.core.current import RunningJob, current_run
from windlass.core.one_line import one_line
from windlass.core.payload import sanitise_text

if TYPE_CHECKING:
    from windlass.core.job import Claimed

MAX_EXCERPT = 16_384
_MAX_LINE = 2_000
CUT = "… earlier lines are left out …"
"""The first line of an excerpt that does not begin with the run."""


class LogExcerpt:
    """The newest lines of one run, within a bound."""

    __slots__ = ("_is_cut", "_lines", "_size", "added")

    def __init__(self) -> None:
        """Start empty; most runs stay so."""
        self._lines: deque[str] | None = None
        self._size = 0
        self._is_cut = False
        self.added = 0
        """How many lines it has been given."""

    def add(self, line: str) -> None:
        """Keep a line and drop the oldest ones when there is no room."""
        kept = sanitise_text(line, _MAX_LINE)
        if self._lines is None:
            self._lines = deque()
        self._lines.append(kept)
        self._size += len(kept.encode()) + 1
        while self._size > MAX_EXCERPT - len(CUT.encode()):
            self._size -= len(self._lines.popleft().encode()) + 1
            self._is_cut = True
        self.added += 1

    def text(self) -> str | None:
        """Return the lines as one text, or nothing; from any thread."""
        if self._lines is None:
            return None
        # A copy is one step of the interpreter; the run goes on logging meanwhile.
        lines = self._lines.copy()
        return "\n".join([CUT, *lines] if self._is_cut else lines)


class LoggedRun(RunningJob):
    """A run whose handler may log."""

    excerpt: LogExcerpt | None = None
    """What it has logged, if it has."""

    def __init__(self, job: Claimed) -> None:
        """Hold its job, and note the tasks that its handler starts."""
        self.job = job
        self.tasks = set()

    @property
    def text(self) -> str | None:
        """The lines it has logged, if there are any."""
        return None if self.excerpt is None else self.excerpt.text()


def current_excerpt() -> LogExcerpt | None:
    """Return where the current run keeps what it logs, if there is one."""
    run = current_run.get()
    # In one step: the handler may log from several threads.
    return vars(run).setdefault("excerpt", LogExcerpt()) if isinstance(run, LoggedRun) else None


class _ExcerptFormatter(logging.Formatter):
    """One line for each record; the lines of a stack trace follow, each behind a bar."""

    def format(self, record: logging.LogRecord) -> str:
        """Write the record; whatever text it carries, nothing but a stack trace begins a new line."""
        trace = self.formatException(record.exc_info) if record.exc_info and record.exc_info[0] is not None else ""
        stack = self.formatStack(record.stack_info) if record.stack_info else ""
        line = one_line(f"{self.formatTime(record)} {record.levelname} {record.name}: {record.getMessage()}")
        return "\n".join([line, *(f"  | {one_line(part)}" for part in (*trace.splitlines(), *stack.splitlines()))])


class LogCapture(logging.Handler):
    """Writes what a handler logs into the excerpt of its run, whichever thread or coroutine it logs from."""

    def __init__(self, excerpt: Callable[[], LogExcerpt | None] = current_excerpt) -> None:
        """Ask `excerpt` for the run that a record belongs to, and format as people read it."""
        super().__init__()
        self._excerpt = excerpt
        self.setFormatter(_ExcerptFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record if a run is current."""
        excerpt = self._excerpt()
        if excerpt is not None:
            try:
                excerpt.add(self.format(record))
            except Exception:  # noqa: BLE001 - as every logging handler: a bad record may not harm the run
                self.handleError(record)

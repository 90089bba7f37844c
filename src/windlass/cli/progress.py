"""Progress bars on the standard error, where that is a terminal and the work takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from windlass.cli.terminal import console

if TYPE_CHECKING:
    from rich.progress import Progress

_AFTER_S = 0.4


class ProgressStep(Protocol):
    """Shows how far the work has come."""

    def __call__(self, done: int, title: str | None = None) -> None:
        """Take how much has been done so far, and what is being done now where that has changed."""


def unseen(done: int, title: str | None = None) -> None:
    """Show nothing."""
    del done, title


def is_shown() -> bool:
    """Whether a bar would be seen."""
    return sys.stderr.isatty()


@contextmanager
def progress(title: str, total: Callable[[], int | None] = lambda: None) -> Iterator[ProgressStep]:
    """Draw a bar while the block goes on; `total` is asked for only when a bar is drawn, and may be unknown."""
    if not is_shown():
        yield unseen
        return
    bar = _Bar(title, total())
    try:
        yield bar.step
    finally:
        bar.end()


class _Bar:
    """A bar that appears once the work has gone on for a moment."""

    def __init__(self, title: str, total: int | None) -> None:
        self._title, self._total = title, total
        self._due_at = time.monotonic() + _AFTER_S
        self._drawn: Progress | None = None

    def step(self, done: int, title: str | None = None) -> None:
        self._title = title or self._title
        if self._drawn is None and time.monotonic() >= self._due_at:
            self._drawn = self._draw()
        if self._drawn is not None:
            self._drawn.update(self._drawn.task_ids[0], completed=done, description=self._title)

    def _draw(self) -> Progress:
        from rich import progress as parts  # noqa: PLC0415 - most work is over before a bar is drawn

        columns = [
            parts.TextColumn("{task.description}"),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TimeRemainingColumn(),
        ]
        # It vanishes at the end: what the command prints then has how much was done.
        drawn = parts.Progress(*columns, console=console(is_error=True), transient=True)
        drawn.add_task(self._title, total=self._total)
        drawn.start()
        return drawn

    def end(self) -> None:
        if self._drawn is not None:
            self._drawn.stop()

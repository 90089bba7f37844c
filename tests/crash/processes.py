"""Real processes that a test starts, talks to over pipes and ends."""

from __future__ import annotations

import asyncio
import inspect
import multiprocessing
import os
import signal
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from tests.crash import child

PATIENCE_S = 90.0
"""Far longer than anything takes on an idle machine; others may be using this one."""

# A process that has imported the roles forks each of ours: starting an interpreter for each took most of the suite's time.
_spawner = multiprocessing.get_context("forkserver")
_ROLES = ("worker", "doomed_worker", "drainer", "enqueuer", "fragile_worker", "late_worker", "locker", "prober")
_DRIVERS = ("windlass.store.postgres", "windlass.store.sqlite")
_spawner.set_forkserver_preload([*_DRIVERS, *(f"tests.crash.{role}" for role in _ROLES)])


async def until(condition: Callable[[], bool | Awaitable[bool]], what: str, *, within: float = PATIENCE_S) -> None:
    """Poll a condition; fails with `what` was waited for."""
    give_up = time.monotonic() + within
    while True:
        answer = condition()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        assert time.monotonic() < give_up, f"waited {within:.0f} s in vain for: {what}"
        await asyncio.sleep(0.01)


class Process:
    """A running role; what it says is kept in order."""

    def __init__(self, label: str, role: ModuleType, options: object, errors: Path) -> None:
        self.label = label
        self._errors = errors
        self._pipe, theirs = multiprocessing.Pipe()
        self._inner = _spawner.Process(target=child.enter, args=(role.__name__, options, theirs, str(errors)), daemon=True)
        self._inner.start()
        # Held by the process alone, so that its death closes the pipe.
        theirs.close()
        self._said: list[tuple[str, Any]] = []
        self._listener = Thread(target=self._listen, args=(self._pipe,), name=f"listen-{label}", daemon=True)
        self._listener.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended and all it said has been read."""
        return not self._listener.is_alive() and self._inner.exitcode is not None

    def said(self, word: str) -> list[Any]:
        """Every value it gave with `word` so far."""
        return [value for spoken, value in list(self._said) if spoken == word]

    async def hear(self, word: str, *, count: int = 1) -> list[Any]:
        """Wait until it has said `word` `count` times; fails at once when it ends before."""
        await until(lambda: len(self.said(word)) >= count or self.is_over, f"{self.label} to say {word!r}")
        found = self.said(word)
        assert len(found) >= count, f"{self.label} {self.ending()} before it said {word!r} {count} times"
        return found

    def tell(self, word: str) -> None:
        """Say something to it."""
        self._pipe.send(word)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._inner.pid is not None
        os.kill(self._inner.pid, number)

    async def end(self) -> int | None:
        """Wait for its end and return the exit code; a negative one is the signal that killed it."""
        await until(lambda: self.is_over, f"{self.label} to end")
        return self._inner.exitcode

    def ending(self) -> str:
        """Say how it ended, with its last words."""
        words = self._errors.read_text(errors="replace") if self._errors.exists() else ""
        return f"ended with {self._inner.exitcode}, stderr:\n{words[-3000:]}"

    def kill(self) -> None:
        """End it now, whatever it does, and let go of its pipe."""
        if self._inner.exitcode is None:
            self._inner.kill()
        self._inner.join()
        self._listener.join()
        self._pipe.close()
        self._inner.close()

    def _listen(self, pipe: Connection[Any, Any]) -> None:
        try:
            while True:
                self._said.append(pipe.recv())
        except (EOFError, OSError):
            return


class Fleet:
    """The processes of one test; none outlives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []

    def start(self, label: str, role: ModuleType, options: object) -> Process:
        """Start a role; it works once it has said `ready` and heard `go`."""
        process = Process(label, role, options, self._folder / f"{len(self._processes)}-{label}.err")
        self._processes.append(process)
        return process

    async def go(self, *processes: Process) -> None:
        """Wait until all are ready, so that none of them misses the race, and let them run."""
        for process in processes:
            await process.hear("ready")
        for process in processes:
            process.tell("go")

    def close(self) -> None:
        """End what still runs."""
        for process in self._processes:
            process.kill()

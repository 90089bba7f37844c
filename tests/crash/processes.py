"""Real processes that a test starts, talks to over pipes and ends."""

from __future__ import annotations

import asyncio
import inspect
import json
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ROOT = Path(__file__).parents[2]
PATIENCE_S = 90.0
"""Far longer than anything takes on an idle machine; others may be using this one."""


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
    """A running role module; what it says is kept in order."""

    def __init__(self, label: str, role: ModuleType, options: DataclassInstance, errors: Path) -> None:
        self.label = label
        self._errors = errors
        command = [sys.executable, "-m", role.__name__, json.dumps(asdict(options))]
        with errors.open("w") as file:
            self._inner = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True
            )
        self._said: list[tuple[str, Any]] = []
        self._listener = Thread(target=self._listen, name=f"listen-{label}", daemon=True)
        self._listener.start()

    @property
    def is_over(self) -> bool:
        """Whether it has ended and all it said has been read."""
        return self._inner.poll() is not None and not self._listener.is_alive()

    def said(self, word: str) -> list[Any]:
        """Every value it gave with `word` so far."""
        return [value for spoken, value in list(self._said) if spoken == word]

    async def hear(self, word: str, *, count: int = 1) -> list[Any]:
        """Wait until it has said `word` `count` times; fails at once when it ends before."""
        await until(lambda: len(self.said(word)) >= count or self.is_over, f"{self.label} to say {word!r}")
        found = self.said(word)
        assert len(found) >= count, f"{self.label} {self.ending()} before it said {word!r} {count} times"
        return found

    def tell(self, line: str) -> None:
        """Send it a line."""
        assert self._inner.stdin is not None
        self._inner.stdin.write(line + "\n")
        self._inner.stdin.flush()

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._inner.send_signal(number)

    async def end(self) -> int:
        """Wait for its end and return the exit code; a negative one is the signal that killed it."""
        await until(lambda: self.is_over, f"{self.label} to end")
        return self._inner.wait()

    def ending(self) -> str:
        """Say how it ended, with its last words."""
        return f"ended with {self._inner.poll()}, stderr:\n{self._errors.read_text(errors='replace')[-3000:]}"

    def kill(self) -> None:
        """End it now, whatever it does, and let go of its pipes."""
        if self._inner.poll() is None:
            self._inner.kill()
        self._inner.wait()
        self._listener.join()
        for pipe in (self._inner.stdin, self._inner.stdout):
            assert pipe is not None
            # A line that the dead process never read may still be in the buffer.
            try:
                pipe.close()
            except BrokenPipeError:
                continue

    def _listen(self) -> None:
        assert self._inner.stdout is not None
        for line in self._inner.stdout:
            # The last line of a killed process may be cut off.
            if line.endswith("\n"):
                word, value = json.loads(line)
                self._said.append((word, value))


class Fleet:
    """The processes of one test; none outlives it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Process] = []

    def start(self, label: str, role: ModuleType, options: DataclassInstance) -> Process:
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

"""The side of the pipes that the started process holds."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from threading import Lock, Thread
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
_mouth = Lock()


def options_of(kind: type[T]) -> T:
    """Read what the test gave this process to do."""
    return kind(**json.loads(sys.argv[1]))


def say(word: str, value: Any = None) -> None:
    """Tell the test; written before this returns, so that a kill cannot take it back."""
    with _mouth:
        sys.stdout.write(json.dumps([word, value]) + "\n")
        sys.stdout.flush()


def die() -> NoReturn:
    """End this process as a crash would, saying when: the databases run on this machine, so their clock is this one."""
    say("dying", time.time_ns() // 1000)
    os.kill(os.getpid(), signal.SIGKILL)
    # The signal may reach another thread first.
    time.sleep(60)
    raise AssertionError


class Ears:
    """The lines that the test sends; when the test is gone, so is this process."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Queue[str] = asyncio.Queue(1000)
        Thread(target=self._listen, daemon=True).start()

    async def hear(self) -> str:
        """Wait for the next line."""
        return await self._heard.get()

    async def ready(self) -> None:
        """Say that the work can begin, and wait for the word."""
        say("ready")
        assert await self.hear() == "go"

    def _listen(self) -> None:
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._heard.put_nowait, line.strip())
        os._exit(3)

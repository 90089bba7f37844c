"""The side of the pipe that the started process holds."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import sys
import time
from multiprocessing.connection import Connection
from threading import Lock, Thread
from typing import Any, NoReturn

_pipe: Connection[Any, Any]
_mouth = Lock()


def enter(role: str, options: object, pipe: Connection[Any, Any], errors: str) -> None:
    """Play a role in a new process, from beginning to end."""
    global _pipe  # noqa: PLW0603 - a process has one parent
    _pipe = pipe
    with open(errors, "w") as file:  # noqa: PTH123 - a file descriptor is what is needed
        os.dup2(file.fileno(), sys.stderr.fileno())
    asyncio.run(importlib.import_module(role).main(options))


def say(word: str, value: Any = None) -> None:
    """Tell the test; written before this returns, so that a kill cannot take it back."""
    with _mouth:
        _pipe.send((word, value))


def die() -> NoReturn:
    """End this process as a crash would, saying when: the databases run on this machine, so their clock is this one."""
    say("dying", time.time_ns() // 1000)
    os.kill(os.getpid(), signal.SIGKILL)
    # The signal may reach another thread first.
    time.sleep(60)
    raise AssertionError


class Ears:
    """What the test says; when the test is gone, so is this process."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard: asyncio.Queue[str] = asyncio.Queue(1000)
        Thread(target=self._listen, daemon=True).start()

    async def hear(self) -> str:
        """Wait for the next word."""
        return await self._heard.get()

    async def ready(self) -> None:
        """Say that the work can begin, and wait for the word."""
        say("ready")
        assert await self.hear() == "go"

    def _listen(self) -> None:
        try:
            while True:
                self._loop.call_soon_threadsafe(self._heard.put_nowait, _pipe.recv())
        except EOFError:
            os._exit(3)
        except RuntimeError:
            # The role is over and its loop closed.
            return

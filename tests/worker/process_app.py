"""Handlers that only a process of their own survives."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from windlass.core.task import Isolation, Registry, TaskSpec
from windlass.worker.context import JobContext


class App:
    """What a child process needs of an application."""

    def __init__(self) -> None:
        self.registry = Registry()


app = App()


def task(function: Any, **options: Any) -> None:
    spec = TaskSpec(name=function.__name__, function=function, arguments=json.loads, isolation=Isolation.PROCESS, **options)
    app.registry.add(spec)


def add(a: int, b: int) -> int:
    return a + b


def segfault() -> None:
    ctypes.string_at(0)


def leave() -> None:
    os._exit(9)


def allocate() -> None:
    hoard = []
    while True:
        hoard.append(bytearray(8 * 1024 * 1024))
        time.sleep(0.005)


def fork_and_hang(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(path).write_text(f"{os.getpid()} {child.pid}", encoding="utf-8")
    time.sleep(600)


def crawl(ctx: JobContext) -> str:
    ctx.progress_sync(count=3, cursor="page-3")
    added = ctx.items_sync([{"phone": "1"}, {"phone": "1"}, {"phone": "2"}])
    return f"{added.added} new, {added.duplicates} known"


async def leave_a_task(path: str) -> None:
    async def background() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            Path(path).write_text("cancelled", encoding="utf-8")  # noqa: ASYNC240 - the end of a test

    KEPT.append(asyncio.create_task(background()))
    await asyncio.sleep(0)


KEPT: list[asyncio.Task[None]] = []
for each in (add, segfault, leave, fork_and_hang, leave_a_task):
    task(each)
task(allocate, memory_limit_mb=64)
task(crawl, takes_context=True)

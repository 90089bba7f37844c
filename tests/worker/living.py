"""Asks the kernel what runs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

TAG = "WINDLASS_TEST_TAG"


def state_of(pid: int) -> str | None:
    """Give the kernel's letter for a process's state; None when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def is_running(pid: int) -> bool:
    return state_of(pid) not in {None, "Z", "X"}


def list_tagged(tag: str) -> list[int]:
    """Every running process but ours that inherited the tag from this test."""
    wanted = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid() and is_running(int(entry.name)):
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if wanted in environment:
                found.append(int(entry.name))
    return found


def list_zombies() -> list[int]:
    """List ended children of this process that nobody reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if state == "Z" and int(parent) == os.getpid():
                found.append(int(entry.name))
    return found


async def until(condition: Callable[[], bool], what: str, *, within: float = 60.0) -> float:
    """Poll a condition and tell how long it took."""
    started = time.monotonic()
    while not condition():
        assert time.monotonic() - started < within, f"waited {within} s in vain for: {what}"
        await asyncio.sleep(0.005)
    return time.monotonic() - started

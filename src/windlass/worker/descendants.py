"""Finds and ends every process that a child has started, also those that left its group."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "_WINDLASS_CHILD"
"""The environment variable that a child and all its descendants carry; its value names the child. Not among the settings."""

_PROC = Path("/proc")
_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 50
_ROUND_PAUSE_S = 0.002
_DEAD = frozenset({"Z", "X", "x"})


class _Process(NamedTuple):
    """The parent, group and session of a process."""

    pid: int
    parent: int
    group: int
    session: int


def find_descendants(child: int, mark: str) -> set[int]:
    """List what still runs of a child: itself, its group, its session, its line, and all that carry its mark.

    A child that has adopted orphans is the parent of every process whose own parent has ended, so while it lives nothing
    gets out of its line. Once it is dead its orphans are init's: one that has left the group and the session and started
    with a clean environment is then not found. Needs /proc: elsewhere nothing is found.
    """
    processes = list(_list_processes())
    found = {each.pid for each in processes if child in {each.pid, each.group, each.session}}
    found |= {each.pid for each in processes if each.pid not in found and _has_mark(each.pid, mark)}
    while line := {each.pid for each in processes if each.parent in found} - found:
        found |= line
    return found - {os.getpid()}


def kill_descendants(child: int, mark: str) -> int:
    """Kill a child and what it started, and return how many there were; until it is reaped, no other process has its number."""
    # Stopped first, so that it starts nothing more while we look; a stopped process can still be killed.
    _send_group(child, signal.SIGSTOP)
    # The child last: until it dies it is given the orphans of what we kill, also of what was started while we looked.
    killed = _kill_all(child, mark)
    _send_group(child, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(child, signal.SIGKILL)
    return killed


def kill_own_descendants() -> None:
    """Kill what this process, a child that ends in order, has started."""
    _kill_all(os.getpid(), os.environ.get(MARK, ""))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, as init would; only Linux can.

    A daemon forks twice, so that it has no parent, and may leave its group, its session and its environment behind. What has
    ended stays a zombie until we end: to reap it we would have to take the exit codes that handlers wait for.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_all(child: int, mark: str) -> int:
    """Kill all but the child itself until nothing is left; bounded, because a process stuck in the kernel stays."""
    killed: set[int] = set()
    for _ in range(_ROUNDS):
        found = find_descendants(child, mark)
        killed |= found
        if not found - {child}:
            break
        for pid in found - {child}:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_ROUND_PAUSE_S)
    return len(killed)


def _send_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _list_processes() -> Iterator[_Process]:
    try:
        names = [entry.name for entry in os.scandir(_PROC)]
    except OSError:
        return
    for name in names:
        if name.isdecimal() and (process := _read_process(int(name))) is not None:
            yield process


def _read_process(pid: int) -> _Process | None:
    """Read a process's parent, group and session; None for one that is gone or a zombie."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # The name before the last parenthesis may itself hold spaces and parentheses.
    state, parent, group, session, *_ = text.rpartition(")")[2].split()
    return None if state in _DEAD else _Process(pid, int(parent), int(group), int(session))


def _has_mark(pid: int, mark: str) -> bool:
    try:
        environment = (_PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return False
    return f"{MARK}={mark}".encode() in environment.split(b"\0")

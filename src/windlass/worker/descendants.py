"""Finds and ends every process that a child has started, also those that left its group."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "WINDLASS_CHILD"
"""The environment variable that a child and all its descendants carry; its value names the child."""

_PROC = Path("/proc")
_DEAD = frozenset({"Z", "X", "x"})


class _Process(NamedTuple):
    """Who a process belongs to."""

    pid: int
    parent: int
    group: int
    session: int


def find_descendants(child: int, mark: str) -> set[int]:
    """List what still runs of a child: itself, its group, its session, its line, and all that carry its mark.

    The line is lost when a process in it ends, the group and session when a process asks for its own, and the mark when
    one starts with a clean environment; one that did all three is not found. Needs /proc: elsewhere nothing is found.
    """
    processes = list(_list_processes())
    found = {each.pid for each in processes if child in {each.pid, each.group, each.session}}
    found |= {each.pid for each in processes if each.pid not in found and _has_mark(each.pid, mark)}
    while line := {each.pid for each in processes if each.parent in found} - found:
        found |= line
    return found - {os.getpid()}


def kill_descendants(child: int, mark: str) -> int:
    """Kill a child and what it started, and say how many there were; until it is reaped, its number is nobody else's."""
    # Stopped first, so that it starts nothing more while we look; a stopped process can still be killed.
    _send_group(child, signal.SIGSTOP)
    found = find_descendants(child, mark)
    for pid in found:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    _send_group(child, signal.SIGKILL)
    return len(found)


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
    """Read who a process belongs to; nothing of one that is gone or a zombie."""
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

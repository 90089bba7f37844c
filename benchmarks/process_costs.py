"""What processes have cost: processor time and memory, as Linux counts them."""

from __future__ import annotations

import os
from pathlib import Path

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def children(pid: int) -> list[int]:
    """List the children that a process's threads have started."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in path.read_text(encoding="ascii").split()]
        except OSError:
            continue
    return found


def family(pid: int) -> list[int]:
    """List a process and all that it has started."""
    return [pid, *(one for child in children(pid) for one in family(child))]


def _times(pid: int) -> list[int]:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return [0, 0, 0, 0]
    return [int(field) for field in fields[11:15]]


def cpu_s(pid: int) -> float:
    """Return the processor time of a process."""
    return sum(_times(pid)[:2]) * _TICK_S


def own_and_ended_s(pid: int) -> float:
    """Return the processor time of a process and of its children that have ended."""
    return sum(_times(pid)) * _TICK_S


def peak_mib(pid: int) -> float:
    """Return the most memory that a process has held."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)

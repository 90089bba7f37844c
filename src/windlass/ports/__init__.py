"""The seams with more than one implementation: the work of a queue, its clock, its wake-ups."""

from __future__ import annotations

from windlass.ports.clock import Clock
from windlass.ports.wakeups import Wakeups
from windlass.ports.work import Renewals, Work

__all__ = ["Clock", "Renewals", "Wakeups", "Work"]

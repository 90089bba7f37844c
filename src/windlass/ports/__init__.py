"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.store import Store
from windlass.ports.wakeups import Wakeups

__all__ = ["Store", "Wakeups"]

"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.clock import Clock
from windlass.ports.store import Store

__all__ = ["Clock", "Store"]

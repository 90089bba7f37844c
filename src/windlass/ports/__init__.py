"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.letters import Letters
from windlass.ports.runs import Runs
from windlass.ports.store import Store

__all__ = ["Letters", "Runs", "Store"]

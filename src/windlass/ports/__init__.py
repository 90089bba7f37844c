"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.breakers import Breakers
from windlass.ports.clock import Clock
from windlass.ports.items import Items
from windlass.ports.letters import Letters
from windlass.ports.settings import Settings
from windlass.ports.sources import Sources
from windlass.ports.store import Store

__all__ = [
    "Breakers",
    "Clock",
    "Items",
    "Letters",
    "Settings",
    "Sources",
    "Store",
]

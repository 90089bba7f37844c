"""What everything above the store speaks."""

from __future__ import annotations

from windlass.ports.audit import Audit
from windlass.ports.chores import Chores
from windlass.ports.gates import Gates
from windlass.ports.lanes import Lanes
from windlass.ports.pruning import Pruning
from windlass.ports.store import Store
from windlass.ports.tasks import Tasks
from windlass.ports.workers import Workers

__all__ = ["Audit", "Chores", "Gates", "Lanes", "Pruning", "Store", "Tasks", "Workers"]

"""What lanes and tasks have in common."""

from __future__ import annotations

from typing import Protocol

from windlass.core.gate import Drain, Gate


class Gates(Protocol):
    """Pausing, resuming and draining by name."""

    async def pause(self, name: str) -> Gate:
        """Let no job be claimed from now on; a claim made from an older view takes nothing."""
        ...

    async def resume(self, name: str) -> Gate:
        """Let jobs be claimed again."""
        ...

    async def running_in(self, name: str) -> int:
        """Count leased jobs: runs, and cancelled ones that have not stopped."""
        ...

    async def drain(self, name: str) -> Drain:
        """Pause, and count what still runs once nothing more can start."""
        ...

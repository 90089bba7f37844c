"""Lanes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from windlass.core.gate import Gate
from windlass.core.lane import Lane
from windlass.ports.gates import Gates


class Lanes(Gates, Protocol):
    """Lanes that were paused, declared or have jobs."""

    async def get(self, name: str) -> Gate:
        """Say whether it is paused, and by whom."""
        ...

    async def list(self) -> Sequence[Lane]:
        """Read every lane by name, with its exact counts."""
        ...

"""Brings the tables of Windlass into the databases of the settings."""

from __future__ import annotations

from random import SystemRandom
from typing import Any

from windlass.django.backends import backends
from windlass.django.database import lent_database
from windlass.store import migrate as migrations


def migrate(alias: str) -> list[str]:
    """Bring one database up to date if a backend lives in it; returns what was applied."""
    if alias not in {backend.database for backend in backends()}:
        return []
    database: Any = lent_database(alias, SystemRandom())
    return [f"{one.version:04}_{one.name}" for one in migrations.up(database)]

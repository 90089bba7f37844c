"""Which functions a database needs to be moved."""

from __future__ import annotations

from windlass.store.moving.postgres_side import PostgresSide
from windlass.store.moving.sqlite_side import SqliteSide
from windlass.store.moving.tables import Side

SIDES: dict[str, Side] = {"sqlite": SqliteSide(), "postgres": PostgresSide()}

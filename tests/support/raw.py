"""Raw SQL on a store's database, for what no verb does."""

from __future__ import annotations

from typing import Any

import psycopg

from windlass.store import Store
from windlass.store.postgres import Postgres
from windlass.store.sqlite import Sqlite


async def execute(store: Store, sql: str) -> list[tuple[Any, ...]]:
    """Run one statement in a transaction of its own and return its rows."""
    database = store.database
    if isinstance(database, Sqlite):
        rows: list[tuple[Any, ...]] = database.run_script(lambda connection: connection.execute(sql).fetchall())
        return rows
    assert isinstance(database, Postgres)
    async with await psycopg.AsyncConnection.connect(database.dsn, autocommit=True) as connection:
        cursor = await connection.execute(sql)
        return await cursor.fetchall() if cursor.description else []

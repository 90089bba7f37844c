"""Whether the tables are those this version was written for."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.store import migrate
from windlass.store.calls.call import Call, single
from windlass.store.rows import Row


def check(dialect: str) -> Call[None]:
    """Raise SchemaError when migrations are missing, unknown or edited."""

    def decode(found: Sequence[Row]) -> None:
        migrate.check(dialect, dict(found))

    return single("list_schema", {}, decode, is_read=True)

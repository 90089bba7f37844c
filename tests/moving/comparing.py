"""Every row of two databases, in one form."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from random import Random
from typing import Any

from windlass.store import open_database
from windlass.store.migrate import Scriptable
from windlass.store.moving.filling import SIDES
from windlass.store.moving.tables import SUMMED, Table, plan


def rows_of(url: str, other: str) -> dict[str, list[Any]]:
    """Read every row that both databases can have, as SQLite would keep it."""
    with closing(open_database(url, rng=Random(1))) as one, closing(open_database(other, rng=Random(2))) as two:
        tables = plan(one.run_script(SIDES[one.dialect].tables), two.run_script(SIDES[two.dialect].tables))
        found: dict[str, list[Any]] = {}
        for name, (theirs, ours) in tables.items():
            # In an order that is the same on both sides.
            names = sorted(ours.names)
            places = [theirs.names.index(each) for each in names]
            found[name] = sorted((tuple(row[place] for place in places) for row in _rows(one, theirs)), key=repr)
            if name in SUMMED:
                found[name] = _summed(found[name], [names.index(each) for each in SUMMED[name]])
    return found


def _rows(database: Scriptable, table: Table) -> list[tuple[Any, ...]]:
    side = SIDES[database.dialect]
    return database.run_script(lambda connection: [tuple(row) for row in side.rows(connection, table, None)])


def _summed(rows: Sequence[tuple[Any, ...]], summed: Sequence[int]) -> list[Any]:
    sums: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        key = tuple(value for place, value in enumerate(row) if place not in summed)
        sums[key] = [one + int(row[place]) for one, place in zip(sums.get(key, [0] * len(summed)), summed, strict=True)]
    return sorted(((*key, *numbers) for key, numbers in sums.items()), key=repr)

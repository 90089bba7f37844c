"""Every row of two databases, in one form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice, zip_longest
from random import Random
from typing import Any, NamedTuple

from windlass.store import open_database
from windlass.store.migrate import Scriptable
from windlass.store.moving.filling import SIDES
from windlass.store.moving.tables import SUMMED, Table, Values, plan

Row = tuple[Any, ...]
_PAGE = 5_000


class Comparison(NamedTuple):
    """How many rows each table has, and the rows that are not the same on both sides."""

    counts: dict[str, int]
    different: list[tuple[str, Row | None, Row | None]]


def rows_of(url: str, other: str) -> dict[str, list[Row]]:
    """Read every row that both databases can have, as SQLite would keep it."""
    with closing(open_database(url, rng=Random(1))) as one, closing(open_database(other, rng=Random(2))) as two:
        return {name: _sorted(one, table, names) for name, (table, _, names) in _shared(one, two).items()}


def compare(url: str, other: str) -> Comparison:
    """Hold every row of one database against the other's, a page at a time: there may be millions."""
    found = Comparison({}, [])
    with closing(open_database(url, rng=Random(1))) as one, closing(open_database(other, rng=Random(2))) as two:
        for name, (first, second, names) in _shared(one, two).items():
            # Each database sorts texts by rules of its own.
            is_ordered = name not in SUMMED and all(first.type_of(key) != "text" for key in first.key)
            read = _rows if is_ordered else _sorted
            found.counts[name] = 0
            for here, there in zip_longest(read(one, first, names), read(two, second, names)):
                found.counts[name] += 1
                if here != there:
                    found.different.append((name, here, there))
    return found


def _shared(one: Scriptable, two: Scriptable) -> dict[str, tuple[Table, Table, list[str]]]:
    """Pair the tables of both, each as its own database keeps it, with the names of the columns that both have."""
    tables = [each.run_script(SIDES[each.dialect].tables) for each in (one, two)]
    first, second = plan(*tables), plan(*reversed(tables))
    return {name: (table, second[name][0], sorted(ours.names)) for name, (table, ours) in first.items()}


def _rows(database: Scriptable, table: Table, names: Sequence[str]) -> Iterator[Row]:
    """Read rows in the order of their key."""
    keys = [table.names.index(name) for name in table.key]
    after: Values | None = None
    while page := _read(database, table, after, _PAGE):
        yield from _with_columns(page, table, names)
        after = [page[-1][place] for place in keys]


def _sorted(database: Scriptable, table: Table, names: Sequence[str]) -> list[Row]:
    rows = sorted(_with_columns(_read(database, table), table, names), key=repr)
    return _summed(rows, [names.index(each) for each in SUMMED[table.name]]) if table.name in SUMMED else rows


def _read(database: Scriptable, table: Table, after: Values | None = None, most: int | None = None) -> list[Values]:
    side = SIDES[database.dialect]
    return database.run_script(lambda connection: list(islice(side.rows(connection, table, after), most)))


def _with_columns(rows: Iterable[Values], table: Table, names: Sequence[str]) -> Iterator[Row]:
    places = [table.names.index(name) for name in names]
    for row in rows:
        yield tuple([row[place] for place in places])


def _summed(rows: Sequence[Row], summed: Sequence[int]) -> list[Row]:
    sums: dict[Row, list[int]] = {}
    for row in rows:
        key = tuple(value for place, value in enumerate(row) if place not in summed)
        sums[key] = [one + int(row[place]) for one, place in zip(sums.get(key, [0] * len(summed)), summed, strict=True)]
    return sorted(((*key, *numbers) for key, numbers in sums.items()), key=repr)

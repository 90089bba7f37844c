"""Cuts rows into batches that fit into memory and into one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from windlass.store.moving.tables import Values

MOST_ROWS = 20_000
_MOST_TEXT = 8 * 1024 * 1024


def batched(rows: Iterable[Values], most_rows: int) -> Iterator[list[Values]]:
    """Gather rows until there are many, or they hold much text."""
    batch: list[Values] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum([len(value) for value in row if type(value) is str])
        if len(batch) >= most_rows or size >= _MOST_TEXT:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch

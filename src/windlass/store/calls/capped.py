"""Counts rows of the smaller tables, up to a bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from windlass.core.capped_count import MOST_COUNTED, CappedCount
from windlass.store.calls.call import Call, single
from windlass.store.rows import Row

_NOTHING: Mapping[str, object] = MappingProxyType({})


def count(query: str, params: Mapping[str, object] = _NOTHING) -> Call[CappedCount]:
    """Count the rows of a query that stops at `:most`."""

    def decode(found: Sequence[Row]) -> CappedCount:
        [(rows,)] = found
        return CappedCount(min(rows, MOST_COUNTED), rows <= MOST_COUNTED)

    return single(query, {**params, "most": MOST_COUNTED + 1}, decode, is_read=True)

"""Writes long lists piece by piece, so that the event loop goes on with other work in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from fastapi import Response
from pydantic_core import to_json

T = TypeVar("T")
_AT_ONCE = 5


async def listing(name: str, rows: Iterable[T], show: Callable[[T], Mapping[str, Any]], rest: Mapping[str, Any]) -> Response:
    """Answer with a list under its name and the `rest` beside it, as their models would write them."""
    written: list[bytes] = []
    for place, row in enumerate(rows, start=1):
        written.append(to_json(show(row)))
        if place % _AT_ONCE == 0:
            await asyncio.sleep(0)
    head = to_json(rest)[:-1]
    body = b'%s,"%s":[%s]}' % (head, name.encode(), b",".join(written))
    return Response(body, media_type="application/json")

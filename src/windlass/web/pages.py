"""The API's own reference, its document, and the assets of all pages."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from windlass.core.access import Role
from windlass.web.dashboard.frame import draw, now
from windlass.web.errors import Refusal
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route

_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@cache
def _assets() -> dict[str, bytes]:
    folder = files("windlass.web").joinpath("assets")
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.rpartition(".")[2] in _KINDS}


async def get_asset(name: str) -> Response:
    """Return a style sheet, script or picture of the pages, or several style sheets as one: `one.css+two.css`."""
    names = name.split("+")
    found = [content for one in dict.fromkeys(names) if (content := _assets().get(one)) is not None]
    kinds = {one.rpartition(".")[2] for one in names}
    if len(found) < len(names) or (len(names) > 1 and kinds != {"css"}):
        raise Refusal(404, f"there is no asset {name}")
    return Response(b"".join(found), media_type=_KINDS[kinds.pop()], headers={"cache-control": "public, max-age=300"})


async def show_reference(request: Request) -> Response:
    """Show the reference of the API."""
    return draw(request, "reference.html", await now(request), here="/reference", title="API reference")


async def get_openapi(request: Request) -> dict[str, Any]:
    """Return the OpenAPI document."""
    context = context_of(request)
    # In a thread: the first time it takes seconds of a busy machine, during which no other request would be answered.
    written = await asyncio.to_thread(lambda: context.server.openapi)
    below = {"servers": [{"url": context.base}]} if context.base else {}
    return JSONResponse(written | below)  # type: ignore[return-value]  # the annotation documents its content


ROUTES = (
    Route("GET", "/reference", Role.VIEWER, show_reference, is_page=True),
    Route("GET", "/assets/{name}", PUBLIC, get_asset, is_page=True),
    Route("GET", "/openapi.json", Role.VIEWER, get_openapi),
)

"""The API's own reference, its document, and the assets of all pages."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from windlass.core.access import Role
from windlass.web.errors import Refusal
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route
from windlass.web.templates import page

_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}


@cache
def _assets() -> dict[str, bytes]:
    folder = files("windlass.web").joinpath("assets")
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.rpartition(".")[2] in _KINDS}


async def get_asset(name: str) -> Response:
    """Return a style sheet, script or picture of the pages."""
    content = _assets().get(name)
    if content is None:
        raise Refusal(404, f"there is no asset {name}")
    return Response(content, media_type=_KINDS[name.rpartition(".")[2]], headers={"cache-control": "public, max-age=300"})


async def show_reference(request: Request) -> Response:
    """Show the reference of the API."""
    return page("reference.html", principal=context_of(request).principal)


async def get_openapi(request: Request) -> dict[str, Any]:
    """Return the OpenAPI document."""
    return JSONResponse(context_of(request).server.openapi)  # type: ignore[return-value]  # the annotation documents its content


ROUTES = (
    Route("GET", "/reference", Role.VIEWER, show_reference, is_page=True),
    Route("GET", "/assets/{name}", PUBLIC, get_asset, is_page=True),
    Route("GET", "/openapi.json", Role.VIEWER, get_openapi),
)

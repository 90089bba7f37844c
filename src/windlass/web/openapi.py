"""The OpenAPI document of the table of routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cache, lru_cache
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

from windlass import __version__
from windlass.core.payload import decode_request
from windlass.web.route import Route

_OF_EVERY_ROUTE = (400, 405, 408, 413, 415, 421, 431, 500, 503)
_OF_GUARDED_ROUTES = (401, 403, 429)
_MOST_BYTES = 2**30
_TEXT_OF = {413: "Body Too Large", 421: "Unknown Host"}


class Problem(BaseModel):
    """Why a request was refused."""

    error: str


_PROBLEM_CONTENT = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


class StrictRequest(Request):
    """Reads bodies with our own codec, which refuses what two readers would take differently."""

    async def json(self) -> Any:
        """Read the body as JSON; the server has checked its size."""
        return decode_request(await self.body(), field="body", limit=_MOST_BYTES)


class StrictRoute(APIRoute):
    """A FastAPI route with strict bodies."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]  # a coroutine is awaitable
        """Hand every request on with the strict reader."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


@lru_cache(maxsize=8)
def document(routes: tuple[Route, ...]) -> dict[str, Any]:
    """Write the document of all rows; once for a table, since it takes longer."""
    return _document([operation(route) for route in routes])


def query_names(operation: APIRoute) -> frozenset[str]:
    """Name the query parameters of an operation, also those that come in a model."""
    names: set[str] = set()
    for field in operation.dependant.query_params:
        kind = field.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= {one.alias or name for name, one in kind.model_fields.items()}
        else:
            names.add(field.alias)
    return frozenset(names)


@cache
def operation(route: Route) -> APIRoute:
    """Make FastAPI's side of a row; when it is first asked for, since all of them took a quarter of a server's start."""
    statuses = {*_OF_EVERY_ROUTE, *route.errors, *(() if route.least is None else _OF_GUARDED_ROUTES)}
    # As a reference: FastAPI would make a validator of its own for each, which took half of a server's start.
    answers: dict[int | str, dict[str, Any]] = {
        status: {"description": _phrase(status), "content": _PROBLEM_CONTENT} for status in sorted(statuses)
    }
    answers |= {status: {"model": model, "description": _phrase(status)} for status, model in route.others.items()}
    if route.kinds:
        answers[route.status] = {"content": {kind: {"schema": {"type": "string"}} for kind in route.kinds}}
    return StrictRoute(
        route.path,
        route.handler,
        methods=[route.method],
        status_code=route.status,
        response_class=Response if route.kinds else JSONResponse,
        responses=answers,
        tags=[_tag(route.path)],
        operation_id=route.handler.__name__,
        summary=(route.handler.__doc__ or "").strip().partition("\n")[0],
        description="It needs no credentials." if route.least is None else f"Takes the role `{route.least}`.",
        include_in_schema=not route.is_page,
        openapi_extra={} if route.least is None else {"security": [{"bearer": []}]},
    )


@lru_cache(maxsize=64)
def _phrase(status: int) -> str:
    return _TEXT_OF.get(status) or HTTPStatus(status).phrase


def _tag(path: str) -> str:
    segments = [segment for segment in path.split("/") if segment not in {"", "api", "v1"}]
    return segments[0] if segments else "pages"


def _document(made_of: Sequence[APIRoute]) -> dict[str, Any]:
    """Write the document of all operations."""
    made = get_openapi(title="Windlass", version=__version__, routes=made_of)
    for methods in made["paths"].values():
        for described in methods.values():
            # FastAPI documents its own kind of refusal; ours are 400.
            described["responses"].pop("422", None)
            _plain_body(described)
    for unused in ("HTTPValidationError", "ValidationError"):
        made.get("components", {}).get("schemas", {}).pop(unused, None)
    made.setdefault("components", {}).setdefault("schemas", {})["Problem"] = Problem.model_json_schema()
    made["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    whole: dict[str, Any] = _with_whole_bounds(made)
    return whole


def _plain_body(described: dict[str, Any]) -> None:
    """Describe a body that may be left out by its model alone: generators of clients support no body that may be null."""
    body = described.get("requestBody")
    if body is None:
        return
    body.setdefault("required", False)
    for content in body["content"].values():
        choices = content["schema"].get("anyOf", [])
        rest = [choice for choice in choices if choice != {"type": "null"}]
        if len(rest) == 1 and len(choices) > 1:
            content["schema"] = rest[0]


_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LARGEST = 2**63 - 1


def _with_whole_bounds(made: Any) -> Any:
    """Write bounds as integers, as the models have them: FastAPI turns each into a float."""
    if isinstance(made, list):
        return [_with_whole_bounds(each) for each in made]
    if not isinstance(made, dict):
        return made
    return {key: _bound(key, value) if key in _BOUNDS else _with_whole_bounds(value) for key, value in made.items()}


def _bound(key: str, value: Any) -> Any:
    if not isinstance(value, float) or not value.is_integer():
        return _with_whole_bounds(value)
    # The databases' largest integer is no float; the nearest one is one too large.
    return min(int(value), _LARGEST) if key == "maximum" else int(value)

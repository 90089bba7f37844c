"""Translates errors to HTTP answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_args, get_type_hints

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from windlass.errors import (
    BreakerOpen,
    CanaryEnded,
    CanaryNotFound,
    CanaryRunning,
    ChoreNotFound,
    DuplicateJob,
    ExecutionNotFound,
    FeedNotFound,
    GateNotFound,
    InvalidInput,
    InvalidTransition,
    JobNotFound,
    LeaseHeld,
    LeaseLost,
    LetterGroupNotFound,
    LetterNotFound,
    LetterSettled,
    PageNotFound,
    ReminderNotFound,
    ScheduleTaken,
    SchemaError,
    SlotTaken,
    SourceNotFound,
    StoreConflict,
    StoreUnavailable,
    TokenNotFound,
    WorkerNotFound,
    nearest,
    shown,
)

STATUS_OF: Mapping[type[Exception], int] = MappingProxyType(
    {
        InvalidInput: 400,
        InvalidTransition: 400,
        ChoreNotFound: 404,
        WorkerNotFound: 404,
        ExecutionNotFound: 404,
        FeedNotFound: 404,
        GateNotFound: 404,
        JobNotFound: 404,
        LetterGroupNotFound: 404,
        CanaryNotFound: 404,
        LetterNotFound: 404,
        ReminderNotFound: 404,
        PageNotFound: 404,
        SourceNotFound: 404,
        TokenNotFound: 404,
        BreakerOpen: 409,
        DuplicateJob: 409,
        LeaseHeld: 409,
        LeaseLost: 409,
        CanaryRunning: 409,
        CanaryEnded: 409,
        LetterSettled: 409,
        ScheduleTaken: 409,
        SlotTaken: 409,
        StoreConflict: 409,
        SchemaError: 503,
        StoreUnavailable: 503,
    }
)
"""The nearest ancestor counts; a route may have another for itself."""

_WHERE: Mapping[type[Exception], str] = MappingProxyType(
    {
        ExecutionNotFound: "GET /api/v1/jobs/{job_id}/executions lists those that are kept",
        FeedNotFound: "GET /api/v1/feeds lists them",
        JobNotFound: "a job is named by its number or UUID, and GET /api/v1/jobs lists them",
        LetterNotFound: "GET /api/v1/dead-letters lists them",
        PageNotFound: "GET /api/v1/pages lists them",
        ReminderNotFound: "GET /api/v1/reminders lists them",
        SourceNotFound: "GET /api/v1/sources lists them",
        TokenNotFound: "GET /api/v1/tokens lists them",
    }
)
"""Where to look for what was not found; other errors name it themselves."""

_RETRY_LATER = {"retry-after": "1"}
UNAVAILABLE = 503
INTERNAL = 500
_NOTHING: Mapping[str, str] = MappingProxyType({})


class BadToken(Exception):
    """A web token was refused."""


class Refusal(Exception):
    """A request that is not let through to its route."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] = _NOTHING) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


class BadBody(RequestValidationError):
    """A body that does not fit the model it was read by."""

    def __init__(self, error: ValidationError, model: type[BaseModel], body: Any) -> None:
        super().__init__([{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)], body=body)
        self.model = model


def refusal_of(
    error: Exception,
    statuses: Mapping[type[Exception], int] = MappingProxyType({}),
    handler: Callable[..., Any] | None = None,
) -> Refusal:
    """Return what a client gets of an error; anything internal becomes a bare 500. `handler` has the fields."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        return Refusal(400, _first_complaint(error, handler))
    # The parser of bodies wraps the errors of our codec.
    known = error.__cause__ if isinstance(error.__cause__, InvalidInput) else error
    status = _status_of(known, statuses)
    if status is None:
        return Refusal(INTERNAL, "internal error; the server's log has the details under this request id")
    if status == UNAVAILABLE:
        return Refusal(status, "the database cannot be used at the moment; try again", _RETRY_LATER)
    where = _WHERE.get(type(known))
    return Refusal(status, f"{known}; {where.format_map(vars(known))}" if where else str(known))


def _status_of(error: BaseException, statuses: Mapping[type[Exception], int]) -> int | None:
    for kind in type(error).__mro__:
        found = statuses.get(kind) or STATUS_OF.get(kind)
        if found is not None:
            return found
    return None


def _first_complaint(error: RequestValidationError, handler: Callable[..., Any] | None) -> str:
    """Name the field and the value, as our own checks do; a misspelt field comes before the one it leaves missing."""
    first, *rest = sorted(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
    field = _field_of(first, error.body)
    if first["type"] == "missing":
        return f"{field}: is required"
    if first["type"] == "extra_forbidden":
        known = _paths_in(error.model if isinstance(error, BadBody) else _body_of(handler), set())
        name = str(first["loc"][-1])
        # A field of another part of the body is right where that part is.
        meant = f"; did you mean {known[name]}?" if name in known else nearest(name, known)
        return f"{field}: is not a field{meant} (got {_shown_as_sent(first.get('input'))})"
    # Each kind of value that a field takes complains by itself.
    texts = dict.fromkeys(_text_of(one) for one in (first, *rest) if _field_of(one, error.body) == field)
    return f"{field}: {' or '.join(texts)} (got {_shown_as_sent(first.get('input'))})"


def _body_of(handler: Callable[..., Any] | None) -> Any:
    return None if handler is None else get_type_hints(handler).get("body")


def _paths_in(kind: Any, seen: set[Any], above: str = "") -> dict[str, str]:
    """Find the fields of every model in a type, with the path that leads to each."""
    if kind in seen:
        return {}
    seen.add(kind)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return {name: path for part in get_args(kind) for name, path in _paths_in(part, seen, above).items()}
    own = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    below = {name: path for one, part in own.items() for name, path in _paths_in(part, seen, f"{above}{one}.").items()}
    return below | {name: f"{above}{name}" for name in own}


_NO_OBJECT = frozenset({"model_type", "model_attributes_type", "dict_type"})
"""What pydantic calls a value that is no object; its own text names a class of Python."""


def _text_of(complaint: Mapping[str, Any]) -> str:
    if complaint["type"] in _NO_OBJECT:
        return "must be a JSON object"
    text = str(complaint["msg"]).removeprefix("Value error, ")
    return text[:1].lower() + text[1:]


def _field_of(complaint: Mapping[str, Any], body: Any) -> str:
    """Name the field as it was sent: the path also holds the names of the kinds that were tried."""
    place, *path = complaint["loc"]
    if place != "body" or not isinstance(body, dict | list):
        return ".".join(map(str, path)) or str(place)
    names: list[str] = []
    within: Any = body
    for part in path:
        if isinstance(within, dict) and (part in within or complaint["type"] == "missing"):
            within = within.get(part)
        elif isinstance(within, list) and isinstance(part, int) and part < len(within):
            within = within[part]
        else:
            continue
        names.append(str(part))
    return ".".join(names) or str(place)


_JSON_WORDS: Mapping[Any, str] = MappingProxyType({None: "null", True: "true", False: "false"})


def _shown_as_sent(value: Any) -> str:
    return _JSON_WORDS[value] if value is None or isinstance(value, bool) else shown(value)

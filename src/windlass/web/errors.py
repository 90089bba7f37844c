"""What an error becomes on the wire."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from fastapi.exceptions import RequestValidationError

from windlass.errors import (
    BreakerOpen,
    DuplicateJob,
    ExecutionNotFound,
    FeedNotFound,
    GateNotFound,
    InvalidInput,
    InvalidTransition,
    JobNotFound,
    LeaseHeld,
    LeaseLost,
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
    shown,
)

STATUS_OF: Mapping[type[Exception], int] = MappingProxyType(
    {
        InvalidInput: 400,
        InvalidTransition: 400,
        ExecutionNotFound: 404,
        FeedNotFound: 404,
        GateNotFound: 404,
        JobNotFound: 404,
        LetterNotFound: 404,
        ReminderNotFound: 404,
        PageNotFound: 404,
        SourceNotFound: 404,
        TokenNotFound: 404,
        BreakerOpen: 409,
        DuplicateJob: 409,
        LeaseHeld: 409,
        LeaseLost: 409,
        LetterSettled: 409,
        ScheduleTaken: 409,
        SlotTaken: 409,
        StoreConflict: 409,
        SchemaError: 503,
        StoreUnavailable: 503,
    }
)
"""The nearest ancestor counts; a route may say otherwise for itself."""

_RETRY_LATER = {"retry-after": "1"}
UNAVAILABLE = 503
INTERNAL = 500
_NOTHING: Mapping[str, str] = MappingProxyType({})


class BadToken(Exception):
    """A web token is not to be believed."""


class Refusal(Exception):
    """A request that is not let through to its route."""

    def __init__(self, status: int, text: str, headers: Mapping[str, str] = _NOTHING) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers


def refusal_of(error: Exception, statuses: Mapping[type[Exception], int] = MappingProxyType({})) -> Refusal:
    """Say what a client is told of an error; what is not theirs to know becomes a bare 500."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RequestValidationError):
        return Refusal(400, _first_complaint(error))
    # The parser of bodies wraps what our codec says.
    known = error.__cause__ if isinstance(error.__cause__, InvalidInput) else error
    status = _status_of(known, statuses)
    if status is None:
        return Refusal(INTERNAL, "internal error; the server's log has the details under this request id")
    if status == UNAVAILABLE:
        return Refusal(status, "the database cannot be used at the moment; try again", _RETRY_LATER)
    return Refusal(status, str(known))


def _status_of(error: BaseException, statuses: Mapping[type[Exception], int]) -> int | None:
    for kind in type(error).__mro__:
        found = statuses.get(kind) or STATUS_OF.get(kind)
        if found is not None:
            return found
    return None


def _first_complaint(error: RequestValidationError) -> str:
    """Name the field and the value, as our own checks do."""
    first = error.errors()[0]
    place, *path = first["loc"]
    field = ".".join(map(str, path)) or str(place)
    if first["type"] == "missing":
        return f"{field}: is required"
    return f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]} (got {shown(first.get('input'))})"

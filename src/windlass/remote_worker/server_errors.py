"""Translates a server's errors to those that a store raises."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windlass.errors import (
    Forbidden,
    InvalidInput,
    LeaseLost,
    NotFound,
    Refused,
    RemoteError,
    StoreRefused,
    StoreUnavailable,
    Unauthorized,
)

_CANCELLED = "cancelled"
_CONFLICT = 409


class JobCancelledThere(LeaseLost):
    """The job was cancelled; the report that was answered so also counts as the end of its run."""


@contextmanager
def translated(job_id: int) -> Iterator[None]:
    """Raise what a store would.

    StoreUnavailable while the server cannot answer, LeaseLost when the job is no longer ours, StoreRefused when a repeated
    request would not help.
    """
    try:
        yield
    except NotFound as error:
        raise LeaseLost(job_id) from error
    except Refused as error:
        if error.status != _CONFLICT:
            raise StoreRefused(str(error)) from error
        raise (JobCancelledThere if str(error) == _CANCELLED else LeaseLost)(job_id) from error
    except (InvalidInput, Unauthorized, Forbidden) as error:
        raise StoreRefused(str(error)) from error
    except RemoteError as error:
        # Also what some proxy answers in the server's place.
        raise StoreUnavailable(str(error)) from error

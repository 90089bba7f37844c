"""What a server's answers mean to a worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windlass.errors import Forbidden, LeaseLost, NotFound, Refused, RemoteError, StoreError, StoreUnavailable, Unauthorized

CANCELLED = "cancelled"
_CONFLICT = 409
REFUSALS = (Unauthorized, Forbidden)
"""What no patience helps against."""


class JobCancelledThere(LeaseLost):
    """Somebody has cancelled the job; the report that heard it counts as the word that its run has stopped."""


@contextmanager
def translated(job_id: int = 0) -> Iterator[None]:
    """Raise what a store would: StoreUnavailable while the server cannot answer, LeaseLost when a job is no longer ours."""
    try:
        yield
    except REFUSALS as error:
        raise StoreError(str(error)) from error
    except NotFound as error:
        raise LeaseLost(job_id) from error
    except Refused as error:
        if error.status != _CONFLICT:
            raise StoreError(str(error)) from error
        raise (JobCancelledThere if str(error) == CANCELLED else LeaseLost)(job_id) from error
    except RemoteError as error:
        # Also what some proxy answers in the server's place.
        raise StoreUnavailable(str(error)) from error

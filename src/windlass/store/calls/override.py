"""The one move that goes round the table of states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from windlass.core.checks import check_text, check_wait
from windlass.core.job import MAX_NAME, JobState
from windlass.errors import InvalidInput
from windlass.store import rows
from windlass.store.calls.call import Means, Step, Steps
from windlass.store.calls.move import Move, move, numbers

OVERRIDES = (JobState.PENDING, JobState.RUNNING, JobState.COMPLETED, JobState.FAILED)
_WORKER = "operator:"


def override_status(ids: Sequence[int], status: JobState, *, by: str, lease_length: timedelta) -> Move:
    """Put jobs into a state by hand, whatever state they are in; a lease is revoked and no dead letter is written.

    `running` gives the job a lease that belongs to `by` and ends after `lease_length`.
    """
    if status not in OVERRIDES:
        raise InvalidInput("status", status, f"must be one of {', '.join(OVERRIDES)}")
    check_text("by", by, MAX_NAME - len(_WORKER))
    check_wait("lease_length", lease_length, least=timedelta(seconds=1))
    params = {"ids": numbers(ids), "state": status, "worker": f"{_WORKER}{by}", "lease": lease_length}

    def changes(means: Means) -> Steps[set[int]]:
        yield Step("lock_jobs", {"ids": numbers(ids)})
        return set(rows.ids((yield Step("override", {**params, "token": means.rng.getrandbits(62)}))))

    return move("override", ids, changes, target=status, contested=frozenset(JobState))

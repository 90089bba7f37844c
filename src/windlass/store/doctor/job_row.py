"""A job's row as the rules look at it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from windlass.core.cadence import Recurrence
from windlass.core.job import CLOSED, WAITING, JobState

STATES = frozenset(JobState)


class JobRow(NamedTuple):
    """A job's row as it stands, with what the other tables have of it."""

    id: int
    task: str
    lane: str
    state: str
    wait_reason: str | None
    priority: int
    base_priority: int
    attempt: int
    max_attempts: int | None
    executions: int
    crashes: int
    consecutive_failures: int
    completed_runs: int
    retry: str
    cadence: str | None
    spawn: bool
    timeout_us: int | None
    token: int | None
    worker: str | None
    held: bool
    stop_requested: bool
    name: str | None
    unique_key: str | None
    unique_scope: str | None
    unique_slot: str | None
    progress_count: int
    result_count: int
    target_count: int | None
    done_reason: str | None
    has_slot_at: bool
    has_claimed_at: bool
    has_expiry: bool
    has_started_at: bool
    has_closed_at: bool
    has_paused_at: bool
    has_rerun_at: bool
    has_rerun_slot_at: bool
    is_run_at_real: bool
    is_expiry_real: bool
    are_instants_real: bool
    expires_after_claim: bool
    finished_after_start: bool
    are_booleans_real: bool
    bodies: int
    kept: int
    numbers: int
    tokens: int
    oldest: int
    newest: int
    token_runs: int
    has_last_run: bool
    standing_letters: int
    open_letters: int
    is_long_closed: bool

    @property
    def job_id(self) -> int:
        """Return which job it is, as the rows of other tables do."""
        return self.id

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its run."""
        return self.state in WAITING

    @property
    def is_closed(self) -> bool:
        """Whether it is over."""
        return self.state in CLOSED

    @property
    def is_running(self) -> bool:
        """Whether a worker runs it."""
        return self.state == JobState.RUNNING

    @property
    def must_be_found(self) -> bool:
        """Whether something is still to happen to the job: it is not over, or its cancelled run has not stopped."""
        return self.state in STATES and (not self.is_closed or self.token is not None)

    @property
    def can_spawn(self) -> bool:
        """Whether its cadence can be read."""
        return self.cadence is not None and is_sound(Recurrence.decode, self.cadence)

    @property
    def ended_runs(self) -> int:
        """How many runs have left an execution: the one that goes on has a number and no row yet."""
        return self.executions - self.is_running


def is_sound(decode: Callable[[str], object], text: str) -> bool:
    """Whether a stored text can be decoded."""
    try:
        decode(text)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return False
    return True

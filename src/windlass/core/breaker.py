"""Circuit breakers: when a failing service is left alone, and when it is tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME
from windlass.core.record import record

DEFAULT_THRESHOLD = 5
DEFAULT_OPEN = timedelta(seconds=60)
SHORTEST_OPEN = timedelta(milliseconds=1)


class BreakerState(StrEnum):
    """Whether work flows, is held back, or is being tried with one job."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerReason(StrEnum):
    """Why a breaker changed."""

    FAILURES = "failures"
    PROBE_STARTED = "probe_started"
    PROBE_FAILED = "probe_failed"
    PROBE_SUCCEEDED = "probe_succeeded"
    RESET = "reset"
    FORCED = "forced"


@record
class BreakerSpec:
    """A breaker as code asks for it: opens after `threshold` failures in a row, is tried again after `open_for`."""

    name: str
    threshold: int = DEFAULT_THRESHOLD
    open_for: timedelta = DEFAULT_OPEN

    def __post_init__(self) -> None:
        """Refuse what could never open or close."""
        check_text("breaker", self.name, MAX_NAME)
        check_range("threshold", self.threshold, 1, 1_000_000)
        check_wait("open_for", self.open_for, least=SHORTEST_OPEN)


class BreakerPermit(NamedTuple):
    """The caller of a breaker: a job's lease or, without a job, the number of an admission."""

    job_id: int | None = None
    token: int | None = None


class Admission(NamedTuple):
    """Whether a caller may go ahead; if not, `probe_at` is when to ask again."""

    is_admitted: bool
    is_probe: bool = False
    probe_at: datetime | None = None
    token: int | None = None
    """A probe shows it when it records."""


class BreakerEvent(NamedTuple):
    """One change of a breaker."""

    id: int
    breaker: str
    state: BreakerState
    reason: BreakerReason
    job_id: int | None
    at: datetime


@record
class Breaker:
    """A breaker as the database has it at `read_at`."""

    name: str
    state: BreakerState
    failures: int
    """What it opened for; probes that failed are added until it closes."""
    successes: int
    """How often a probe has closed it."""
    threshold: int
    open_for: timedelta
    last_failure_at: datetime | None
    opened_at: datetime | None
    probe_at: datetime | None
    """When it is tried again; an operator may have opened it for good."""
    half_opened_at: datetime | None
    probe: BreakerPermit
    last_probe_job_id: int | None
    is_forced: bool
    updated_at: datetime
    is_probe_alive: bool
    """Whether the lease of the probe still stands or, without a job, its time is not over."""
    read_at: datetime

    @property
    def is_due(self) -> bool:
        """Whether the next caller is the probe."""
        if self.state is BreakerState.HALF_OPEN:
            return not self.is_probe_alive
        return self.state is BreakerState.OPEN and self.probe_at is not None and self.probe_at <= self.read_at

    @property
    def ask_again_at(self) -> datetime:
        """When a caller that is held back should ask again; always ahead, so that no caller asks in a circle."""
        later = self.read_at + self.open_for
        return later if self.probe_at is None or self.state is not BreakerState.OPEN else self.probe_at

    def is_held_by(self, permit: BreakerPermit) -> bool:
        """Whether this caller is the probe. Without a job it stays so, even late, until another takes its place."""
        is_same = self.state is BreakerState.HALF_OPEN and permit.token is not None and permit == self.probe
        return is_same and (permit.job_id is None or self.is_probe_alive)

    def meant_by(self, spec: BreakerSpec) -> Breaker:
        """Take the threshold and the open time from the calling code; a row that an operator made has the defaults."""
        return replace(self, threshold=spec.threshold, open_for=spec.open_for)

    def opened(self, spec: BreakerSpec, failures: int) -> Breaker:
        """Leave the service alone for a while."""
        return replace(
            self,
            state=BreakerState.OPEN,
            failures=failures,
            threshold=spec.threshold,
            open_for=spec.open_for,
            last_failure_at=self.read_at,
            opened_at=self.read_at,
            probe_at=self.read_at + spec.open_for,
            half_opened_at=None,
            probe=BreakerPermit(),
            is_forced=False,
        )

    def forced(self, for_: timedelta | None) -> Breaker:
        """Leave it alone because an operator forced it."""
        return replace(
            self,
            state=BreakerState.OPEN,
            opened_at=self.read_at,
            probe_at=None if for_ is None else self.read_at + for_,
            half_opened_at=None,
            probe=BreakerPermit(),
            is_forced=True,
        )

    def probed(self, permit: BreakerPermit) -> Breaker:
        """Let one caller try; a job that tried before is remembered, so that the next probe can be another."""
        return replace(
            self,
            state=BreakerState.HALF_OPEN,
            half_opened_at=self.read_at,
            probe=permit,
            last_probe_job_id=permit.job_id or self.last_probe_job_id,
            is_forced=False,
            is_probe_alive=True,
        )

    def closed(self, *, successes: int = 0) -> Breaker:
        """Let work flow."""
        return replace(
            self,
            state=BreakerState.CLOSED,
            failures=0,
            successes=self.successes + successes,
            probe_at=None,
            half_opened_at=None,
            probe=BreakerPermit(),
            is_forced=False,
        )


def admit(breaker: Breaker | None, spec: BreakerSpec, caller: BreakerPermit) -> Admission | None:
    """Return whether a caller may go ahead; nothing when it would be the probe and has yet to take the permit."""
    if breaker is None or breaker.state is BreakerState.CLOSED:
        return Admission(is_admitted=True)
    if breaker.is_held_by(caller):
        return Admission(is_admitted=True, is_probe=True, token=caller.token)
    return None if breaker.is_due else Admission(is_admitted=False, probe_at=breaker.meant_by(spec).ask_again_at)


def take_result(
    breaker: Breaker, spec: BreakerSpec, caller: BreakerPermit, *, succeeded: bool, failures: int
) -> tuple[Breaker, BreakerReason] | None:
    """Return the breaker after a result, and why it changed; None when this caller's result changes nothing."""
    if breaker.is_held_by(caller):
        if succeeded:
            return breaker.closed(successes=1), BreakerReason.PROBE_SUCCEEDED
        return breaker.opened(spec, breaker.failures + 1), BreakerReason.PROBE_FAILED
    if breaker.state is BreakerState.CLOSED and not succeeded and failures >= spec.threshold:
        return breaker.opened(spec, failures), BreakerReason.FAILURES
    return None

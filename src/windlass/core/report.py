"""What a pull worker reports, whether it may, and what it is answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, NamedTuple

from windlass.core.checks import check_text, check_wait
from windlass.core.item import NewItem, encode_items
from windlass.core.job import CLOSED, MAX_NAME, Claimed, JobState, RunReason, WaitReason
from windlass.core.outcome import NO_RUN, TRACE_LIMIT, Failure, Outcome, Raised, Returned, Run
from windlass.core.payload import JsonText, decode, encode_object, sanitise_text
from windlass.core.record import record
from windlass.core.reported_outcome import ReportedOutcome
from windlass.errors import InvalidInput, LeaseLost, TokenNeeded

# With the job's number it is an index entry of PostgreSQL.
MAX_IDEMPOTENCY_KEY = 255
SHORTEST_EXTENSION = timedelta(seconds=60)
LONGEST_EXTENSION = timedelta(seconds=600)
DEFAULT_EXTENSION = timedelta(seconds=120)

WORKER_DONE = "worker_done"
TARGET_REACHED = "target_reached"
NO_MORE_RESULTS = "no_more_results"


def extension(asked: timedelta | None) -> timedelta:
    """Bring the lease a worker asks for within its bounds."""
    return DEFAULT_EXTENSION if asked is None else min(max(asked, SHORTEST_EXTENSION), LONGEST_EXTENSION)


@record(kw_only=True)
class Report:
    """A worker's report about a job it holds, checked when it is made."""

    job_id: int
    worker: str
    token: int | None = None
    """Without one the worker's own name is the fence."""
    items: Sequence[Mapping[str, Any]] = ()
    cursor: str | None = None
    """Where to go on; none keeps the one before."""
    is_done: bool = False
    extend: timedelta | None = None
    error: str | None = None
    log: str | None = None
    key: str | None = None
    """Names the report, so that sending it twice counts once."""
    reported: ReportedOutcome | None = None
    """How the run goes or went in full, in place of `is_done` and `error`."""

    def __post_init__(self) -> None:
        """Refuse bad values before anything is written."""
        check_text("worker", self.worker, MAX_NAME)
        if self.key is not None:
            check_text("idempotency_key", self.key, MAX_IDEMPOTENCY_KEY)
        if self.extend is not None:
            check_wait("extend_lease_sec", self.extend, least=timedelta())
        if self.reported is not None and (self.is_done or self.error is not None):
            raise InvalidInput("outcome", self.reported.document()["kind"], "is given in place of done and error, not with them")
        for field in ("cursor", "error", "log"):
            value = getattr(self, field)
            if value is not None and not isinstance(value, str):
                raise InvalidInput(field, value, "must be a text")

    def encoded_items(self) -> tuple[NewItem, ...]:
        """Write the items; raises InvalidPayload naming the one that is wrong."""
        return encode_items(self.items)

    @property
    def log_excerpt(self) -> str | None:
        """The log as an execution keeps it."""
        return None if self.log is None else sanitise_text(self.log, TRACE_LIMIT)

    @property
    def message(self) -> str | None:
        """The log as its job shows it; the log of a whole run is its execution's alone."""
        return None if self.reported is not None and self.reported.outcome is not None else self.log

    @property
    def run(self) -> Run:
        """What the worker measured of the run."""
        measured = NO_RUN if self.reported is None else self.reported.run
        return measured._replace(log_excerpt=self.log_excerpt)

    def outcome(self, result_count: int, target_count: int | None) -> Outcome | None:
        """Return how this report ends the run, the items in it counted; None when the run goes on."""
        if self.reported is not None:
            return self.reported.outcome
        # Some clients send every field every time: an empty error is none.
        if self.error is not None and self.error.strip():
            return Raised(Failure(self.error, "Reported"))
        is_reached = target_count is not None and result_count >= target_count
        if not (self.is_done or is_reached):
            return None
        if is_reached:
            return Returned(done_reason=TARGET_REACHED)
        return Returned(done_reason=WORKER_DONE if target_count is None else NO_MORE_RESULTS)


class EndedRun(NamedTuple):
    """A job's last run that has ended."""

    token: int | None = None
    worker: str | None = None
    reason: str | None = None
    was_held: bool = False
    """Whether the reporter has held this job before, under another token than the lease's."""


NO_PAST = EndedRun()


class Case(NamedTuple):
    """A job as a report finds it; `job` has no lease unless `has_lease` is true."""

    job: Claimed
    started_at: datetime | None
    state: JobState
    has_lease: bool
    is_stopping: bool
    done_reason: str | None
    item_key: str | None
    collection: str | None
    now: datetime
    answer: str | None
    """What was answered when this report came the first time."""
    past: EndedRun = NO_PAST


class Standing(Enum):
    """How a reporter stands to the job."""

    HOLDER = auto()
    FINISHED = auto()
    CANCELLED = auto()


def standing(report: Report, case: Case) -> Standing:
    """Return how the reporter is related to the job; raises LeaseLost for all but its last holder."""
    if case.has_lease:
        is_ours = _holds(report, case)
    elif case.state in {JobState.COMPLETED, JobState.FAILED}:
        is_ours = report.token is None or _ended_it(report, case)
    else:
        is_ours = case.state is JobState.CANCELLED and _was_last(report, case)
    if not is_ours:
        raise LeaseLost(report.job_id)
    if case.state is JobState.RUNNING:
        return Standing.HOLDER
    return Standing.CANCELLED if case.state is JobState.CANCELLED else Standing.FINISHED


def _holds(report: Report, case: Case) -> bool:
    if report.token is not None:
        return report.token == case.job.token
    if report.worker != case.job.worker:
        return False
    if case.past.was_held:
        # A late report of its earlier run would be taken for this run's.
        raise TokenNeeded(report.job_id, report.worker)
    return True


def _ended_it(report: Report, case: Case) -> bool:
    """Whether the run with this token is the one that was accepted, and not one that was taken away."""
    return report.token == case.past.token and case.past.reason != RunReason.LEASE_EXPIRED


def _was_last(report: Report, case: Case) -> bool:
    return report.worker == case.past.worker if report.token is None else report.token == case.past.token


@record(kw_only=True)
class ReportAnswer:
    """What a report did; one that is repeated is answered as it was the first time."""

    state: JobState
    added: int = 0
    duplicates: int = 0
    lease_expires_at: datetime | None = None
    is_done: bool = False
    """Whether nothing more is expected: the run is complete, or the job has failed for good."""
    done_reason: str | None = None
    should_stop: bool = False
    is_repeated: bool = False

    @property
    def is_cancelled(self) -> bool:
        """Whether the job was cancelled; the report then also confirms that its run has stopped."""
        return self.state is JobState.CANCELLED and self.should_stop

    def encode(self) -> JsonText:
        """Write the stored form."""
        expiry = self.lease_expires_at
        document = {
            "state": str(self.state),
            "added": self.added,
            "duplicates": self.duplicates,
            "lease_expires_at": None if expiry is None else expiry.isoformat(),
            "is_done": self.is_done,
            "done_reason": self.done_reason,
            "should_stop": self.should_stop,
        }
        return encode_object(document, field="answer")

    @staticmethod
    def decode(text: str) -> ReportAnswer:
        """Read the stored form of an answer that is given again."""
        stored = decode(text, field="answer")
        expiry = stored.pop("lease_expires_at")
        answer = ReportAnswer(
            **stored, lease_expires_at=None if expiry is None else datetime.fromisoformat(expiry), is_repeated=True
        )
        return replace(answer, state=JobState(answer.state))


class JobStatus(NamedTuple):
    """The little a worker asks about a job while it works."""

    job_id: int
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    is_stopping: bool
    done_reason: str | None
    last_error: str | None

    @property
    def should_stop(self) -> bool:
        """Whether work on it is no longer wanted."""
        return self.state is not JobState.RUNNING or self.is_stopping

    @property
    def reason(self) -> str | None:
        """Why the job stands where it does."""
        if self.state in CLOSED:
            return self.done_reason or self.last_error
        return "stop_requested" if self.is_stopping else self.wait_reason

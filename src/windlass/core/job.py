"""The records of a job's life: what is enqueued, claimed, kept and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypedDict, overload

from windlass.core.cadence import Overlap, Recurrence
from windlass.core.checks import check_instant, check_range, check_text, check_wait
from windlass.core.durations import Duration
from windlass.core.ids import job_uuid
from windlass.core.item import parse_fields
from windlass.core.payload import JsonText, check_stored, decode, decode_object
from windlass.core.record import record
from windlass.core.retry import RetrySpec
from windlass.core.traceparent import check_traceparent
from windlass.errors import InvalidInput

MAX_NAME = 200
MAX_SCHEDULE_NAME = 255
MAX_KEY = 1000
MAX_TEXT = 4000
MAX_ATTEMPTS = 1_000_000
INT32 = 2**31 - 1


class JobState(StrEnum):
    """Where a job is in its life."""

    SCHEDULED = "scheduled"
    PENDING = "pending"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


WAITING = frozenset({JobState.SCHEDULED, JobState.PENDING, JobState.PAUSED})
CLOSED = frozenset({JobState.COMPLETED, JobState.FAILED, JobState.CANCELLED})


class WaitReason(StrEnum):
    """Why a waiting job waits."""

    NEW = "new"
    OPERATOR = "operator"
    DELAY = "delay"
    RETRY = "retry"
    LOST = "lost"
    SNOOZE = "snooze"
    RELEASED = "released"
    RECURRENCE = "recurrence"


RETRIED = frozenset({WaitReason.RETRY, WaitReason.LOST})
"""Why a job waits after a run that failed or was lost."""


class RunStatus(StrEnum):
    """How a run ended, or that it goes on."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RunReason(StrEnum):
    """Why a run did not complete."""

    ERROR = "error"
    TIMED_OUT = "timed_out"
    LEASE_EXPIRED = "lease_expired"
    WORKER_CRASHED = "worker_crashed"
    RELEASED = "released"
    SNOOZED = "snoozed"
    CANCELLED = "cancelled"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


class UniqueScope(StrEnum):
    """How long a job holds its unique key."""

    PENDING = "pending"
    ACTIVE = "active"
    FOREVER = "forever"


class OnConflict(StrEnum):
    """What an enqueue does when its key is taken."""

    IGNORE = "ignore"
    REPLACE = "replace"
    RERUN = "rerun"
    REJECT = "reject"


DEFAULT_RETRY = RetrySpec()
NO_PAYLOAD = JsonText("{}")


class CommonOptions(TypedDict, total=False):
    """Options of an enqueue that are the same from Python and over HTTP; what is left out comes from the task."""

    lane: str
    priority: int
    """Higher first; over HTTP from 0 to 100."""
    run_at: datetime
    delay: Duration
    max_attempts: int
    timeout: Duration
    unique_key: str
    """Over HTTP, it also makes an enqueue safe to send again when the connection breaks, which is then done."""
    subject: str
    correlation_id: str
    target_count: int
    item_key: Sequence[str]
    collection: str
    metadata: Mapping[str, Any]


# Not frozen: that makes each one five times as dear to build, and a bulk builds thousands.
@dataclass(slots=True, kw_only=True)
class NewJob:
    """A job to enqueue, checked when it is made; `payload` is JSON text as `payload.encode_object` writes it."""

    task: str
    payload: str = NO_PAYLOAD
    lane: str = "default"
    priority: int = 0
    run_at: datetime | None = None
    delay: timedelta | None = None
    slot_at: datetime | None = None
    """The planned time of a recurring job whose first run is at another one."""
    max_attempts: int | None = None
    retry: RetrySpec = DEFAULT_RETRY
    recurrence: Recurrence | None = None
    spawn: bool = False
    timeout: timedelta | None = None
    name: str | None = None
    unique_key: str | None = None
    unique_scope: UniqueScope = UniqueScope.ACTIVE
    on_conflict: OnConflict = OnConflict.IGNORE
    child_key: str | None = None
    subject: str | None = None
    correlation_id: str | None = None
    parent_id: int | None = None
    target_count: int | None = None
    item_key: str | None = None
    collection: str | None = None
    metadata: str | None = None
    description: str | None = None
    created_by: str | None = None
    declared_by: str | None = None
    traceparent: str | None = None
    """The W3C trace context it was enqueued in: its runs are linked to that."""

    def __post_init__(self) -> None:
        """Refuse what no database column would take, naming the field."""
        _check_name("task", self.task)
        _check_name("lane", self.lane)
        if not isinstance(self.payload, JsonText):
            check_stored(self.payload, field="payload")
        if self.priority or isinstance(self.priority, bool):
            check_range("priority", self.priority, -INT32 - 1, INT32)
        if not self.is_plain:
            self._check_details()

    @property
    def is_plain(self) -> bool:
        """Whether the job has nothing but task, lane, payload, priority and retry, as most jobs of a large bulk."""
        return _details_of(self) == _NO_DETAILS

    @classmethod
    def like(cls, job: Job | Mapping[str, Any], **changes: Any) -> NewJob:
        """Describe a job that does what another one does, as its child; `job` is a row, or its columns by name.

        Everything an enqueuer can set is taken over except the times and the trace: a new column needs nothing here.
        """
        column = job.__getitem__ if isinstance(job, Mapping) else partial(_column, job)
        timeout_us, cadence = column("timeout_us"), column("cadence")
        values = {name: column(name) for name in _COPIED}
        values |= {
            "priority": column("base_priority"),
            "retry": RetrySpec.decode(column("retry")),
            "recurrence": None if cadence is None else Recurrence.decode(cadence),
            "timeout": None if timeout_us is None else timedelta(microseconds=timeout_us),
            "unique_scope": column("unique_scope") or UniqueScope.ACTIVE,
            "parent_id": column("id"),
        }
        return cls(**values | changes)

    def _check_details(self) -> None:
        for field in ("run_at", "slot_at"):
            if getattr(self, field) is not None:
                check_instant(field, getattr(self, field))
        for field, limit in _OPTIONAL_TEXT.items():
            value = getattr(self, field)
            if value is not None:
                check_text(field, value, limit)
        for field, low, high in _OPTIONAL_RANGES:
            value = getattr(self, field)
            if value is not None:
                check_range(field, value, low, high)
        if self.traceparent is not None:
            check_traceparent(self.traceparent)
        self._check_rules()

    def _check_rules(self) -> None:
        if self.run_at is not None and self.delay is not None:
            raise InvalidInput("delay", self.delay, "give run_at or delay, not both")
        if self.delay is not None:
            check_wait("delay", self.delay, least=timedelta())
        if self.timeout is not None:
            check_wait("timeout", self.timeout, least=SHORTEST_TIMEOUT)
        if self.metadata is not None:
            check_stored(self.metadata, field="metadata")
        if self.item_key is not None:
            check_stored(self.item_key, field="item_key", kind=list)
            parse_fields(self.item_key)
        if self.recurrence is not None and self.unique_key is not None and self.unique_scope == UniqueScope.PENDING:
            raise InvalidInput(
                "unique_scope", self.unique_scope, "a recurring job would lose its key during its runs; use active"
            )
        if self.recurrence is None and (self.name is not None or self.spawn):
            raise InvalidInput("name" if self.name else "spawn", self.name or self.spawn, "only a recurring job has it")
        if self.recurrence is None and self.slot_at is not None:
            raise InvalidInput("slot_at", self.slot_at, "only a recurring job has it")
        if self.recurrence is not None and not self.spawn and self.recurrence.overlap is not Overlap.ALLOW:
            raise InvalidInput(
                "overlap", self.recurrence.overlap, "is for templates (spawn): a job that comes back is never beside itself"
            )


def _column(job: Job, name: str) -> Any:
    return getattr(job, _FIELD_OF[name])


_ALWAYS_GIVEN = {"task", "payload", "lane", "priority", "retry", "unique_scope", "on_conflict"}
_DETAILS = [field for field in fields(NewJob) if field.name not in _ALWAYS_GIVEN]
_details_of = attrgetter(*(field.name for field in _DETAILS))
_NO_DETAILS = tuple(field.default for field in _DETAILS)


class LikeJobs(Sequence[NewJob]):
    """Jobs to enqueue that are alike but for their payloads, which `encode` wrote; each is made when it is read."""

    def __init__(self, first: NewJob, payloads: Sequence[JsonText]) -> None:
        """Describe a job like `first` for each payload."""
        self.first = first
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.payloads)

    @overload
    def __getitem__(self, place: int) -> NewJob: ...

    @overload
    def __getitem__(self, place: slice) -> LikeJobs: ...

    def __getitem__(self, place: int | slice) -> NewJob | LikeJobs:
        if isinstance(place, slice):
            return LikeJobs(self.first, self.payloads[place])
        return replace(self.first, payload=self.payloads[place])


SHORTEST_TIMEOUT = timedelta(milliseconds=1)
_OPTIONAL_TEXT = {
    "name": MAX_SCHEDULE_NAME,
    "unique_key": MAX_KEY,
    "child_key": MAX_KEY,
    "subject": MAX_KEY,
    "correlation_id": MAX_KEY,
    "collection": MAX_NAME,
    "description": MAX_TEXT,
    "created_by": MAX_NAME,
    "declared_by": MAX_NAME,
}
_OPTIONAL_RANGES = (
    ("max_attempts", 1, MAX_ATTEMPTS),
    ("parent_id", 1, 2**63 - 1),
    ("target_count", 0, 2**63 - 1),
)


def _check_name(field: str, value: object) -> None:
    if isinstance(value, str):
        _check_known_name(field, value)
    else:
        check_text(field, value, MAX_NAME)


@lru_cache(maxsize=4096)
def _check_known_name(field: str, value: str) -> None:
    check_text(field, value, MAX_NAME)


class Claimed(NamedTuple):
    """A job as its worker holds it: only what running and deciding need."""

    id: int
    task: str
    lane: str
    payload: str
    priority: int
    run_at: datetime
    slot_at: datetime | None
    attempt: int
    max_attempts: int | None
    execution: int
    crashes: int
    consecutive_failures: int
    completed_runs: int
    retry: str
    cadence: str | None
    timeout_us: int | None
    token: int
    worker: str
    claimed_at: datetime
    lease_expires_at: datetime
    subject: str | None
    correlation_id: str | None
    parent_id: int | None
    last_cursor: str | None
    progress_count: int
    result_count: int
    target_count: int | None
    traceparent: str | None = None
    """The trace it was enqueued in; while it runs under OpenTelemetry, that of the run."""


class Lapsed(NamedTuple):
    """A lease past its end, with what reclaiming must know about it."""

    job: Claimed
    started_at: datetime | None
    is_stopping: bool
    is_cancelled: bool
    log_excerpt: str | None = None
    """What the run had logged when its worker last recorded it."""


class Lease(NamedTuple):
    """What a claim writes on the jobs it takes; the token is never used twice."""

    token: int
    worker: str
    length: timedelta


class Held(NamedTuple):
    """What a renewal returns of a lease that still stands."""

    id: int
    token: int
    should_stop: bool
    is_cancelled: bool
    lease_expires_at: datetime
    is_skipped: bool = False
    """Another transaction held the row and no process vouched for the lease, so it ends when it did before."""


class Slice(NamedTuple):
    """One lane's pending jobs of one task, with the priority and the time of the first; claims begin there."""

    lane: str
    task: str
    priority: int
    run_at: datetime
    breaker: str | None = None
    """The breaker that is due to be tried with one job of this slice; `claim` leaves such a slice to `claim_probe`."""


class Slices(NamedTuple):
    """Every slice that no gate holds back, and the gate version it was read under."""

    version: int
    open: tuple[Slice, ...]
    suspects: tuple[Slice, ...] = ()
    """The slices with jobs whose last run ended in a lost lease; `claim` leaves those jobs to `claim_suspects`."""

    @property
    def claimable(self) -> tuple[Slice, ...]:
        """The slices that any number of jobs may be claimed from."""
        return tuple(part for part in self.open if part.breaker is None)

    @property
    def claimable_suspects(self) -> tuple[Slice, ...]:
        """The slices that a suspect may be claimed from."""
        return tuple(part for part in self.suspects if part.breaker is None)

    @property
    def breakers(self) -> tuple[str, ...]:
        """The breakers that are due to be tried, the one whose jobs come first first; those of suspects come last."""
        return tuple(dict.fromkeys(part.breaker for part in (*self.open, *self.suspects) if part.breaker is not None))

    def select(self, is_wanted: Callable[[Slice], bool]) -> Slices:
        """Keep the slices that a filter accepts."""
        return Slices(self.version, tuple(filter(is_wanted, self.open)), tuple(filter(is_wanted, self.suspects)))

    def behind(self, claimed: Iterable[Claimed]) -> Slices:
        """Let each slice begin behind the jobs just claimed, given in their order; those of a lower priority move nothing."""
        last = {(job.lane, job.task, job.priority): job.run_at for job in claimed}
        return self._replace(open=tuple(part._replace(run_at=last.get(part[:3], part.run_at)) for part in self.open))

    def merged(self) -> Slices:
        """List suspects among the others, for a reader that takes one job at a time and needs no quarantine."""
        heads = sorted((*self.open, *self.suspects), key=lambda part: (-part.priority, part.run_at))
        first = {(part.lane, part.task): part for part in reversed(heads)}
        return Slices(self.version, tuple(part for part in heads if first[part.lane, part.task] is part))


class Enqueued(NamedTuple):
    """The job an enqueue led to; a duplicate is the one that held the key."""

    id: int
    is_duplicate: bool = False


class Stored(NamedTuple):
    """The job an enqueue led to, as the enqueue left it."""

    job: Job
    is_duplicate: bool

    @property
    def id(self) -> int:
        """The job's number."""
        return self.job.id


class Promoted(NamedTuple):
    """How many jobs became due, when the next one does, and whether templates are due to spawn."""

    jobs: int
    next_at: datetime | None
    has_templates: bool = False
    has_missed: bool = False
    """Whether jobs past their slot wait for their rule to decide."""
    has_pending: bool = True
    """Whether anything could be claimable: False is certain, True may mean jobs that a gate holds back."""
    unleased_at: datetime | None = None
    """When no lease was held, if so."""


class Count(NamedTuple):
    """How many jobs of a task and lane are in a state for a reason."""

    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    jobs: int


@record
class Job:
    """The whole row of a job, with its body.

    A field that ends in `_json` is text exactly as it is stored. The property without that ending decodes it, anew at each
    reading: what a reader does to the value changes nothing else.
    """

    id: int
    task: str
    lane: str
    state: JobState
    wait_reason: WaitReason | None
    priority: int
    base_priority: int
    run_at: datetime
    slot_at: datetime | None
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
    claimed_at: datetime | None
    lease_expires_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    closed_at: datetime | None
    paused_at: datetime | None
    held: bool
    stop_requested: bool
    rerun_at: datetime | None
    rerun_slot_at: datetime | None
    name: str | None
    unique_key: str | None
    unique_scope: UniqueScope | None
    unique_slot: str | None
    child_key: str | None
    subject: str | None
    correlation_id: str | None
    parent_id: int | None
    last_error: str | None
    last_error_at: datetime | None
    last_cursor: str | None
    progress_message: str | None
    progress_count: int
    result_count: int
    target_count: int | None
    last_progress_at: datetime | None
    done_reason: str | None
    created_at: datetime
    updated_at: datetime
    payload_json: str
    metadata_json: str | None
    description: str | None
    item_key_json: str | None
    collection: str | None
    created_by: str | None
    declared_by: str | None
    declared_at: datetime | None
    traceparent: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """The arguments of its task, as JSON values."""
        return decode_object(self.payload_json)

    @property
    def metadata(self) -> dict[str, Any]:
        """Free data kept with it; empty if there is none."""
        return {} if self.metadata_json is None else decode_object(self.metadata_json, field="metadata")

    @property
    def item_key(self) -> list[str] | None:
        """The fields that make the key of its items, if it sets them itself."""
        value: list[str] | None = None if self.item_key_json is None else decode(self.item_key_json, field="item_key")
        return value

    @property
    def is_enabled(self) -> bool:
        """Whether the job goes on by itself: neither paused nor to be paused after its run."""
        return self.state is not JobState.PAUSED and not self.held

    @property
    def last_run_at(self) -> datetime | None:
        """When its last run ended; a template, which never runs, has when it last enqueued a job."""
        return self.started_at if self.spawn else self.finished_at

    @property
    def cancel_reason(self) -> str | None:
        """The text given when the job was cancelled, or else its done reason; an error of an earlier run is none."""
        if self.state is not JobState.CANCELLED:
            return None
        return self.last_error if self.last_error is not None and self.last_error_at == self.closed_at else self.done_reason

    @property
    def recurrence(self) -> Recurrence | None:
        """The rule that brings this job back."""
        return None if self.cadence is None else Recurrence.decode(self.cadence)


_FIELD_OF = {field.name.removesuffix("_json"): field.name for field in fields(Job)}
SHARED = {field.name: _FIELD_OF[field.name] for field in fields(NewJob) if field.name in _FIELD_OF}
"""The columns that an enqueuer sets, each with the field of a Job that has it."""
_COPIED = sorted(SHARED.keys() - {"run_at", "slot_at", "declared_by", "traceparent"})


@record
class Execution:
    """One run of a job; what ends a run is empty while it goes on. What ends in `_json` is stored text, as in a `Job`."""

    job_id: int
    number: int
    attempt: int
    token: int
    slot_at: datetime | None
    worker: str
    started_at: datetime
    finished_at: datetime | None
    wait_ms: int
    status: RunStatus
    reason: RunReason | None
    error: str | None
    error_type: str | None
    stack_trace: str | None
    log_excerpt: str | None
    cpu_time_ms: int | None
    memory_peak_mb: int | None
    items_crawled: int | None
    items_indexed: int | None
    metadata_json: str | None
    result_json: str | None
    stopped_at: datetime | None
    version: str | None = None
    """The version of the application in its worker, as long as the registry knows the worker."""

    @property
    def result(self) -> Any:
        """What the handler returned, as a JSON value; None too if it returned nothing."""
        return None if self.result_json is None else decode(self.result_json, field="result")

    @property
    def metadata(self) -> dict[str, Any]:
        """What the handler left in `ctx.metadata`; empty if nothing."""
        return {} if self.metadata_json is None else decode_object(self.metadata_json, field="metadata")

    @property
    def duration_ms(self) -> int | None:
        """How long the run took, in whole milliseconds."""
        return None if self.finished_at is None else (self.finished_at - self.started_at) // timedelta(milliseconds=1)


class Note(NamedTuple):
    """A note of an operator on a dead letter."""

    at: datetime
    by: str
    text: str


@record
class DeadLetter:
    """The record of a job that failed for good. What ends in `_json` is stored text, as in a `Job`."""

    id: int
    job_id: int
    task: str
    lane: str
    original_job_json: str
    error: str
    details_json: str | None
    fingerprint: str
    deaths: int
    first_died_at: datetime
    died_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None
    closed_at: datetime | None
    closed_reason: str | None
    edited_payload_json: str | None = None
    edited_by: str | None = None
    edited_at: datetime | None = None
    notes_json: str = "[]"
    version: str | None = None
    """The version of the application that the first death of this kind came from, if its worker named one."""

    @property
    def original_job(self) -> dict[str, Any]:
        """The job's row as it died; without a correlation id it shows its own UUID, as everywhere."""
        job = decode_object(self.original_job_json, field="original_job")
        return {**job, "correlation_id": job.get("correlation_id") or str(job_uuid(self.job_id))}

    @property
    def details(self) -> dict[str, Any] | None:
        """What is known of the run it died in: worker, attempt, type of the error, stack trace."""
        return None if self.details_json is None else decode_object(self.details_json, field="details")

    @property
    def edited_payload(self) -> dict[str, Any] | None:
        """The payload its job comes back with, if an operator has changed it."""
        return None if self.edited_payload_json is None else decode_object(self.edited_payload_json, field="payload")

    @property
    def notes(self) -> tuple[Note, ...]:
        """What people wrote about it, the oldest first."""
        kept = decode(self.notes_json, field="notes")
        return tuple(Note(datetime.fromisoformat(one["at"]), one["by"], one["text"]) for one in kept)


@record(kw_only=True)
class Edit:
    """What an operator changes on a job; absent fields stay as they are."""

    payload: str | None = None
    metadata: str | None = None
    description: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    retry: RetrySpec | None = None
    timeout: timedelta | None = None
    recurrence: Recurrence | None = None
    """A new cadence needs `next_at`: only a changed cadence moves the next run."""
    next_at: datetime | None = None
    rule: Mapping[str, Any] | None = None
    """Fields of the job's own recurrence to change, or `interval` with an IntervalChange; the rest of it stays."""
    payload_fields: Mapping[str, Any] | None = None
    """Fields of the job's own payload to change."""
    retry_base: timedelta | None = None
    """The first delay of the job's own retry policy."""
    is_enabled: bool | None = None
    """Whether a recurring job goes on by itself."""

    @property
    def is_partial(self) -> bool:
        """Whether the job must be read to know what it becomes."""
        parts = (self.rule, self.payload_fields, self.retry_base, self.is_enabled)
        return any(part is not None for part in parts)

    def __post_init__(self) -> None:
        """Refuse bad values before anything is written."""
        if self.priority is not None:
            check_range("priority", self.priority, -INT32 - 1, INT32)
        if self.max_attempts is not None:
            check_range("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS)
        if self.timeout is not None:
            check_wait("timeout", self.timeout, least=SHORTEST_TIMEOUT)
        if self.description is not None:
            check_text("description", self.description, MAX_TEXT)
        if self.next_at is not None:
            check_instant("next_at", self.next_at)
        for field in ("payload", "metadata"):
            text = getattr(self, field)
            if text is not None:
                check_stored(text, field=field)
        if (self.recurrence is None) != (self.next_at is None):
            raise InvalidInput("next_at", self.next_at, "goes with a new cadence")

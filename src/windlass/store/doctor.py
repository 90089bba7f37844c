"""Reads a database and reports every broken rule."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.core import payload
from windlass.core.breaker import BreakerState
from windlass.core.cadence import Recurrence
from windlass.core.job import CLOSED, MAX_ATTEMPTS, MAX_KEY, MAX_NAME, WAITING, JobState, RunReason, RunStatus, WaitReason
from windlass.core.retention import DEFAULT, Retention
from windlass.core.retry import PROFILES, Profile, RetrySpec
from windlass.core.settings import is_pulled
from windlass.errors import InvalidInput
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.rows import Row

if TYPE_CHECKING:
    from windlass.store.store import Store

_PAGE = 500
# A payload may have a megabyte.
_BODIES = 32
_FIRST = -(2**63)


class BrokenRule(NamedTuple):
    """A rule that a row breaks."""

    rule: str
    job_id: int | None
    detail: str


async def check(store: Store, *, profiles: Mapping[str, Profile] = PROFILES, kept: Retention = DEFAULT) -> list[BrokenRule]:
    """Read the whole database and report every broken rule; an empty list is a healthy store.

    It reads page by page and may run beside workers: what must agree is read by one statement.
    """
    problems: list[BrokenRule] = []
    async for row in _pages(store, "doctor_jobs", _PAGE, kept_dead=kept.keep_dead):
        problems += _check_job(_Job._make(row), profiles, kept.keep_executions)
    async for row in _pages(store, "doctor_bodies", _BODIES):
        problems += _check_body(_Body._make(row))
    async for row in _pages(store, "doctor_executions", _PAGE, second_key="after_number"):
        problems += _broken(_EXECUTION_RULES, _Execution._make(row))
    async for row in _pages(store, "doctor_letters", _PAGE):
        problems += _broken(_LETTER_RULES, _Letter._make(row))
    for query, describe in _WHOLE.items():
        problems += describe(await store.run(_read(query, {})))
    problems += [BrokenRule("audit", None, broken.detail) for broken in await store.audit.verify()]
    return problems


async def _pages(store: Store, query: str, limit: int, *, second_key: str | None = None, **others: object) -> AsyncIterator[Row]:
    """Walk a query whose first columns are its key."""
    params: dict[str, object] = {"after": _FIRST, "limit": limit, **others}
    if second_key is not None:
        params[second_key] = 0
    while True:
        found = await store.run(_read(query, params))
        for row in found:
            yield row
        if len(found) < limit:
            return
        params = params | {"after": found[-1][0]}
        if second_key is not None:
            params[second_key] = found[-1][1]


def _read(query: str, params: dict[str, Any]) -> Call[Sequence[Row]]:
    def steps(_: Means) -> Steps[Sequence[Row]]:
        return (yield Step(query, params))

    # Reads whole tables, whatever their size.
    return Call(steps, is_single=True, is_read=True, timeout=timedelta())


class _Job(NamedTuple):
    """A job's row as it stands, with what the other tables say of it."""

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
        return self.id

    @property
    def is_waiting(self) -> bool:
        return self.state in WAITING

    @property
    def is_closed(self) -> bool:
        return self.state in CLOSED

    @property
    def is_running(self) -> bool:
        return self.state == JobState.RUNNING

    @property
    def must_be_found(self) -> bool:
        """Whether something is still to happen to the job: it is not over, or its cancelled run has not stopped."""
        return self.state in _STATES and (not self.is_closed or self.token is not None)

    @property
    def can_spawn(self) -> bool:
        return self.cadence is not None and _is_sound(Recurrence.decode, self.cadence)

    @property
    def ended_runs(self) -> int:
        """How many runs have left an execution: the one that goes on has a number and no row yet."""
        return self.executions - self.is_running


class _Body(NamedTuple):
    job_id: int
    payload: str
    metadata: str | None
    item_key: str | None
    has_job: bool


class _Execution(NamedTuple):
    job_id: int
    number: int
    attempt: int
    wait_ms: int
    status: str
    reason: str | None
    finished_after_start: bool
    is_json: bool
    has_job: bool


class _Letter(NamedTuple):
    id: int
    job_id: int
    deaths: int
    has_acknowledged_at: bool
    has_acknowledged_by: bool
    has_closed_at: bool
    closed_reason: str | None
    died_after_first: bool
    is_json: bool
    has_job: bool


class _Rule(NamedTuple):
    name: str
    holds: Callable[[Any], Any]
    says: str


def _broken(rules: Sequence[_Rule], row: Any) -> Iterator[BrokenRule]:
    for rule in rules:
        if not rule.holds(row):
            yield BrokenRule(rule.name, row.job_id, rule.says.format(row=row))


def _check_job(job: _Job, profiles: Mapping[str, Profile], kept_executions: int) -> Iterator[BrokenRule]:
    yield from _broken(_STATE_RULES, job)
    # What else a row must be follows from its state.
    if job.state in _STATES:
        yield from _broken(_JOB_RULES, job)
        if problem := _history_problem(job, kept_executions):
            yield BrokenRule("executions", job.id, problem)
    yield from _check_rules(job, profiles)


def _history_problem(job: _Job, kept_executions: int) -> str | None:
    span = f"runs {job.oldest}..{job.newest} are kept as {job.kept} rows"
    if job.kept == 0:
        return f"no run is kept of {job.ended_runs}" if job.ended_runs else None
    if not job.kept == job.numbers == job.newest - job.oldest + 1:
        return f"{span}: numbers are missing or given twice"
    if job.newest != job.ended_runs:
        return f"{span}, but {job.ended_runs} have ended"
    if job.oldest != 1 and job.kept < kept_executions:
        return f"{span}: retention keeps the newest {kept_executions}"
    return None


def _check_rules(job: _Job, profiles: Mapping[str, Profile]) -> Iterator[BrokenRule]:
    """Check the rules stored as text and what they say about the row."""
    if job.cadence is not None and not _is_sound(Recurrence.decode, job.cadence):
        yield BrokenRule("cadence", job.id, f"cadence {job.cadence!r} cannot be read")
    if job.must_be_found and sum(finds(job) for finds in _FINDERS) != 1:
        yield BrokenRule("reachable", job.id, f"no query, or more than one, ever finds this {job.state} job")
    if not _is_sound(RetrySpec.decode, job.retry):
        yield BrokenRule("retry", job.id, f"retry {job.retry!r} cannot be read")
    elif job.state in _STATES:
        most = job.max_attempts or profiles[RetrySpec.decode(job.retry).profile].max_attempts
        # The settings of a pulled job may have said something else when it was decided.
        is_settled = job.max_attempts is not None or not is_pulled(job.retry)
        # A failed job may be given fewer attempts than it has used, and then be overridden: they count only after a fresh start.
        if is_settled and not job.is_closed and job.attempt + job.is_waiting > most:
            yield BrokenRule("attempts", job.id, f"{job.state} with {job.attempt} attempts used of {most}")


def _is_sound(decode: Callable[[str], object], text: str) -> bool:
    try:
        decode(text)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return False
    return True


# Each stands for one query: claim, promote, due_templates, lapsed; a paused job waits for its operator.
_FINDERS: tuple[Callable[[_Job], bool], ...] = (
    lambda job: job.state == JobState.PENDING and bool(job.lane and job.task and job.is_run_at_real),
    lambda job: job.state == JobState.SCHEDULED and not job.spawn and job.is_run_at_real,
    lambda job: job.state == JobState.SCHEDULED and job.spawn and job.is_run_at_real and job.can_spawn,
    lambda job: job.token is not None and job.is_expiry_real,
    lambda job: job.state == JobState.PAUSED,
)

_STATES = frozenset(JobState)
_BREAKER_STATES = frozenset(BreakerState)
_HOLDABLE = frozenset({JobState.SCHEDULED, JobState.PENDING, JobState.RUNNING})
_CLAIMED = frozenset({JobState.PENDING, JobState.RUNNING})
_LONGEST_NAME = 255
_WAIT_REASONS = frozenset(WaitReason)
_SCOPES = frozenset({"pending", "active", "forever"})
_LETTER_ENDS = frozenset({"requeued", "retried", "succeeded", "overridden"})
_REASONS: dict[str, frozenset[str | None]] = {
    RunStatus.COMPLETED: frozenset({None}),
    RunStatus.FAILED: frozenset(
        {RunReason.ERROR, RunReason.TIMED_OUT, RunReason.LEASE_EXPIRED, RunReason.WORKER_CRASHED},
    ),
    RunStatus.CANCELLED: frozenset(
        {RunReason.RELEASED, RunReason.SNOOZED, RunReason.CANCELLED, RunReason.STOPPED, RunReason.SUPERSEDED},
    ),
}


def _is_lease_legal(job: _Job) -> bool:
    if job.token is None:
        return not (job.is_running or job.has_expiry or job.worker is not None)
    is_holder = job.is_running or job.state == JobState.CANCELLED
    return is_holder and job.has_expiry and job.has_claimed_at and job.worker is not None


def _is_slot_right(job: _Job) -> bool:
    """Whether the unique slot is held exactly while its scope holds."""
    is_set = job.unique_slot is not None
    if job.done_reason == "superseded" and job.state == JobState.CANCELLED and not is_set:
        return True
    match job.unique_scope:
        case "pending":
            return is_set == job.is_waiting
        case "active":
            is_stopping = job.state == JobState.CANCELLED and job.token is not None
            return is_set == (not job.is_closed or is_stopping)
        case "forever":
            return is_set
        case _:
            return True


def _is_token_used_rightly(job: _Job) -> bool:
    """Whether the lease's token has the executions it should: one once a started run was cancelled, else none."""
    return job.token_runs == (job.state == JobState.CANCELLED and job.token is not None and job.has_started_at)


def _are_letters_right(job: _Job) -> bool:
    """Whether a failed job has its letter, unless failed by override, and a one-shot job that did not fail has none open.

    Retention takes an acknowledged letter after a while; its job stays if it is recurring or holds its key for ever.
    """
    if job.state == JobState.FAILED:
        return job.standing_letters > 0 or job.done_reason == "overridden" or job.is_long_closed
    return job.cadence is not None or job.open_letters == 0


def _counters(job: _Job) -> tuple[int, ...]:
    kept = (job.attempt, job.executions, job.crashes, job.consecutive_failures, job.completed_runs)
    beyond_zero = 0 if job.timeout_us is None else job.timeout_us - 1
    return (*kept, job.progress_count, job.result_count, job.target_count or 0, beyond_zero)


_STATE_RULES = (
    _Rule("state", lambda job: job.state in _STATES, "unknown state {row.state!r}"),
    _Rule("task", lambda job: 1 <= len(job.task) <= MAX_NAME, "task {row.task!r} is empty or too long"),
    _Rule("lane", lambda job: 1 <= len(job.lane) <= MAX_NAME, "lane {row.lane!r} is empty or too long"),
    _Rule("booleans", lambda job: job.are_booleans_real, "a truth value is neither 0 nor 1"),
    _Rule("priority", lambda job: job.priority >= job.base_priority, "priority {row.priority} is below {row.base_priority}"),
    _Rule(
        "max_attempts",
        lambda job: job.max_attempts is None or 1 <= job.max_attempts <= MAX_ATTEMPTS,
        "max_attempts {row.max_attempts} is out of range",
    ),
    _Rule("body", lambda job: job.bodies == 1, "has {row.bodies} bodies"),
)
"""What holds in any state. The names are those of the table's constraints where it has one."""

_JOB_RULES = (
    _Rule(
        "wait_reason",
        lambda job: job.wait_reason is None or job.wait_reason in _WAIT_REASONS,
        "unknown wait_reason {row.wait_reason!r}",
    ),
    _Rule("waiting", lambda job: (job.wait_reason is not None) == job.is_waiting, "{row.state} with reason {row.wait_reason!r}"),
    _Rule("closed", lambda job: job.has_closed_at == job.is_closed, "{row.state} does not go with its closed_at"),
    _Rule("paused", lambda job: job.has_paused_at == (job.state == JobState.PAUSED), "{row.state}, and paused_at says otherwise"),
    _Rule("lease", _is_lease_legal, "{row.state} with token {row.token} of worker {row.worker!r}"),
    _Rule(
        "run_marks",
        lambda job: job.is_running or not (job.stop_requested or job.has_rerun_at),
        "{row.state} with a mark that only a run has",
    ),
    _Rule("rerun_slot", lambda job: job.has_rerun_at or not job.has_rerun_slot_at, "rerun_slot_at without rerun_at"),
    _Rule("stop", lambda job: job.cadence is not None or not job.stop_requested, "stop_requested on a one-shot job"),
    _Rule("held", lambda job: not job.held or job.state in _HOLDABLE, "held while {row.state}"),
    _Rule("slot", lambda job: job.cadence is not None or not job.has_slot_at, "slot_at on a one-shot job"),
    _Rule(
        "template",
        lambda job: not job.spawn or (job.cadence is not None and job.state not in _CLAIMED),
        "a template is {row.state} with cadence {row.cadence!r}",
    ),
    _Rule("counters", lambda job: min(_counters(job)) >= 0, "a counter is below zero, or the timeout is"),
    _Rule(
        "charges",
        # Each of these moves only with an execution number, and a fresh start takes them back alone; templates have no runs.
        lambda job: max(job.attempt, job.consecutive_failures, job.completed_runs * (not job.spawn)) <= job.executions,
        "more attempts, failures or successes than its {row.executions} executions",
    ),
    _Rule(
        "unique_key",
        lambda job: job.unique_key is None or 1 <= len(job.unique_key) <= MAX_KEY,
        "unique_key {row.unique_key!r} is empty or too long",
    ),
    _Rule(
        "unique_scope",
        lambda job: job.unique_scope is None if job.unique_key is None else job.unique_scope in _SCOPES,
        "unique_scope {row.unique_scope!r} with key {row.unique_key!r}",
    ),
    _Rule(
        "unique_slot",
        lambda job: job.unique_slot is None or job.unique_slot == job.unique_key,
        "unique_slot {row.unique_slot!r} is not the key {row.unique_key!r}",
    ),
    _Rule("slot_held", _is_slot_right, "{row.state}, scope {row.unique_scope}, with unique_slot {row.unique_slot!r}"),
    _Rule(
        "name",
        lambda job: job.name is None or (1 <= len(job.name) <= _LONGEST_NAME and job.cadence is not None),
        "name {row.name!r} is empty, too long or on a one-shot job",
    ),
    _Rule("tokens", lambda job: job.tokens == job.kept, "{row.kept} runs share {row.tokens} tokens"),
    _Rule("token_runs", _is_token_used_rightly, "{row.state} and its token has {row.token_runs} executions"),
    _Rule(
        "last_run",
        lambda job: job.is_running or job.spawn or not job.has_started_at or job.has_last_run,
        "started_at is not that of execution {row.executions}",
    ),
    _Rule("letters", _are_letters_right, "{row.state} with {row.standing_letters} letters, {row.open_letters} of them open"),
    _Rule("one_letter", lambda job: job.open_letters <= 1, "{row.open_letters} open letters"),
    _Rule("instants", lambda job: job.are_instants_real, "an instant is out of range"),
    _Rule("expiry", lambda job: job.expires_after_claim, "the lease ends before its claim"),
    _Rule("times", lambda job: job.is_running or job.finished_after_start, "finished_at is before started_at"),
)

_EXECUTION_RULES = (
    _Rule("execution_job", lambda run: run.has_job, "execution {row.number} of no job"),
    _Rule("execution_status", lambda run: run.status in _REASONS, "execution {row.number} has status {row.status!r}"),
    _Rule(
        "execution_reason",
        lambda run: run.status not in _REASONS or run.reason in _REASONS[run.status],
        "execution {row.number} is {row.status} with reason {row.reason!r}",
    ),
    _Rule(
        "execution_number",
        lambda run: run.number >= 1 and 0 <= run.attempt <= run.number and run.wait_ms >= 0,
        "execution {row.number} has attempt {row.attempt} and wait_ms {row.wait_ms}",
    ),
    _Rule("execution_times", lambda run: run.finished_after_start, "execution {row.number} ends before it starts"),
    _Rule("execution_json", lambda run: run.is_json, "execution {row.number} has metadata or a result that is not JSON"),
)

_LETTER_RULES = (
    # Retention lets a letter that was acknowledged or closed outlive its job.
    _Rule(
        "letter_job",
        lambda letter: letter.has_job or letter.has_acknowledged_at or letter.has_closed_at,
        "letter {row.id} is open and of no job",
    ),
    _Rule(
        "letter_acknowledged",
        lambda letter: letter.has_acknowledged_at == letter.has_acknowledged_by,
        "letter {row.id} has half an acknowledgement",
    ),
    _Rule(
        "letter_closed",
        lambda letter: letter.closed_reason in _LETTER_ENDS if letter.has_closed_at else letter.closed_reason is None,
        "letter {row.id} has closed_reason {row.closed_reason!r}",
    ),
    _Rule(
        "letter_deaths", lambda letter: letter.deaths >= 1 and letter.died_after_first, "letter {row.id} has impossible deaths"
    ),
    _Rule("letter_json", lambda letter: letter.is_json, "letter {row.id} holds a document that is not JSON"),
)


def _check_body(body: _Body) -> Iterator[BrokenRule]:
    if not body.has_job:
        yield BrokenRule("body_job", body.job_id, "a body of no job")
    try:
        if not isinstance(payload.decode_request(body.payload), dict):
            yield BrokenRule("payload", body.job_id, "payload is not a JSON object")
        for field in ("metadata", "item_key"):
            if (text := getattr(body, field)) is not None:
                payload.decode_request(text, field=field)
    except InvalidInput as error:
        yield BrokenRule("payload", body.job_id, str(error))


def _clashes(rule: str, what: str) -> Callable[[Sequence[Row]], list[BrokenRule]]:
    return lambda found: [BrokenRule(rule, job_id, f"{what} is held by job {holder}") for job_id, holder in found]


def _miscounts(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule(
            "counts", None, f"{counted} counted, {present} present: task {task!r}, lane {lane!r}, {state} {reason}".rstrip()
        )
        for task, lane, state, reason, counted, present in found
    ]


def _uncounted(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("totals", None, f"{counted} runs counted, {kept} kept") for counted, kept in found]


def _split_minutes(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule("minutes", None, f"{minute:%Y-%m-%d %H:%M}: {whole} runs in all, {parts} by task")
        for minute, whole, parts in found
    ]


def _gates(found: Sequence[Row]) -> list[BrokenRule]:
    return [] if found[0][0] == 1 else [BrokenRule("gates", None, f"windlass_gates has {found[0][0]} rows: no claim finds work")]


class _BreakerRow(NamedTuple):
    """A breaker's row, the job that tries it, and the state its newest event tells."""

    job_id: int | None
    name: str
    state: str
    threshold: int
    open_us: int
    has_opened_at: bool
    has_probe_at: bool
    has_half_opened_at: bool
    has_probe_token: bool
    is_forced: bool
    told_state: str | None


_BREAKER_RULES = (
    _Rule("breaker_state", lambda row: row.state in _BREAKER_STATES, "breaker {row.name!r} is {row.state!r}"),
    _Rule(
        "breaker_limits", lambda row: row.threshold >= 1 and row.open_us >= 1, "breaker {row.name!r} could never open or close"
    ),
    _Rule(
        "breaker_open",
        lambda row: row.state != BreakerState.OPEN or (row.has_opened_at and (row.has_probe_at or row.is_forced)),
        "breaker {row.name!r} is open and will never be tried",
    ),
    _Rule(
        "breaker_probe",
        lambda row: (row.state == BreakerState.HALF_OPEN) == row.has_half_opened_at == row.has_probe_token,
        "breaker {row.name!r} is {row.state}, and its permit says otherwise",
    ),
    _Rule("breaker_permit", lambda row: row.has_probe_token or row.job_id is None, "breaker {row.name!r} has half a permit"),
    _Rule(
        "breaker_forced",
        lambda row: not row.is_forced or row.state == BreakerState.OPEN,
        "breaker {row.name!r} is forced open and {row.state}",
    ),
    _Rule(
        "breaker_told",
        lambda row: row.told_state is None or row.told_state == row.state,
        "breaker {row.name!r} is {row.state}, and its newest event says {row.told_state}",
    ),
)


def _breakers(found: Sequence[Row]) -> list[BrokenRule]:
    return [problem for row in found for problem in _broken(_BREAKER_RULES, _BreakerRow._make(row))]


def _missing_items(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("items", job_id, f"{said} results counted, {present} items kept") for job_id, said, present in found]


def _feeds(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("feed", job_id, f"feed {feed_id} and its job disagree") for job_id, feed_id in found]


def _miscounted_feeds(found: Sequence[Row]) -> list[BrokenRule]:
    return [
        BrokenRule("subscribers", job_id, f"feed {feed_id}: {counted} counted, {present} present")
        for job_id, feed_id, counted, present in found
    ]


def _lost_keys(found: Sequence[Row]) -> list[BrokenRule]:
    return [BrokenRule("idempotency", job_id, f"{keys} keys of no job") for job_id, keys in found]


_WHOLE: dict[str, Callable[[Sequence[Row]], list[BrokenRule]]] = {
    "doctor_slots": _clashes("slot_clash", "its unique slot"),
    "doctor_names": _clashes("name_clash", "its name"),
    "doctor_counts": _miscounts,
    "doctor_gates": _gates,
    "doctor_breakers": _breakers,
    "doctor_items": _missing_items,
    "doctor_idempotency": _lost_keys,
    "doctor_feeds": _feeds,
    "doctor_subscribers": _miscounted_feeds,
    "doctor_totals": _uncounted,
    "doctor_minutes": _split_minutes,
}

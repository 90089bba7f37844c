"""The rules of a job's row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from windlass.core.cadence import Recurrence
from windlass.core.job import MAX_ATTEMPTS, MAX_KEY, MAX_NAME, MAX_SCHEDULE_NAME, JobState, WaitReason
from windlass.core.retry import Profile, RetrySpec
from windlass.core.settings import is_pulled
from windlass.store.doctor.job_row import STATES, JobRow, is_sound
from windlass.store.doctor.rule import BrokenRule, Rule, broken


def check_job(job: JobRow, profiles: Mapping[str, Profile], kept_executions: int) -> Iterator[BrokenRule]:
    """Report every rule that a job's row breaks."""
    yield from broken(_STATE_RULES, job)
    # What else a row must be follows from its state.
    if job.state in STATES:
        yield from broken(_JOB_RULES, job)
        if problem := _history_problem(job, kept_executions):
            yield BrokenRule("executions", job.id, problem)
    yield from _check_rules(job, profiles)


def _history_problem(job: JobRow, kept_executions: int) -> str | None:
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


def _check_rules(job: JobRow, profiles: Mapping[str, Profile]) -> Iterator[BrokenRule]:
    """Check the rules stored as text and what they mean for the row."""
    if job.cadence is not None and not is_sound(Recurrence.decode, job.cadence):
        yield BrokenRule("cadence", job.id, f"cadence {job.cadence!r} cannot be read")
    if job.must_be_found and sum(finds(job) for finds in _FINDERS) != 1:
        yield BrokenRule("reachable", job.id, f"no query, or more than one, ever finds this {job.state} job")
    if not is_sound(RetrySpec.decode, job.retry):
        yield BrokenRule("retry", job.id, f"retry {job.retry!r} cannot be read")
    elif job.state in STATES:
        most = job.max_attempts or profiles[RetrySpec.decode(job.retry).profile].max_attempts
        # The settings of a pulled job may have been others when it was decided.
        is_settled = job.max_attempts is not None or not is_pulled(job.retry)
        # A failed job may be given fewer attempts than it has used, and then be overridden: they count only after a fresh start.
        if is_settled and not job.is_closed and job.attempt + job.is_waiting > most:
            yield BrokenRule("attempts", job.id, f"{job.state} with {job.attempt} attempts used of {most}")


# Each stands for one query: claim, promote, due_templates, lapsed; a paused job waits for its operator.
_FINDERS: tuple[Callable[[JobRow], bool], ...] = (
    lambda job: job.state == JobState.PENDING and bool(job.lane and job.task and job.is_run_at_real),
    lambda job: job.state == JobState.SCHEDULED and not job.spawn and job.is_run_at_real,
    lambda job: job.state == JobState.SCHEDULED and job.spawn and job.is_run_at_real and job.can_spawn,
    lambda job: job.token is not None and job.is_expiry_real,
    lambda job: job.state == JobState.PAUSED,
)

_HOLDABLE = frozenset({JobState.SCHEDULED, JobState.PENDING, JobState.RUNNING})
_CLAIMED = frozenset({JobState.PENDING, JobState.RUNNING})
_WAIT_REASONS = frozenset(WaitReason)
_SCOPES = frozenset({"pending", "active", "forever"})


def _is_lease_legal(job: JobRow) -> bool:
    if job.token is None:
        return not (job.is_running or job.has_expiry or job.worker is not None)
    is_holder = job.is_running or job.state == JobState.CANCELLED
    return is_holder and job.has_expiry and job.has_claimed_at and job.worker is not None


def _is_slot_right(job: JobRow) -> bool:
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


def _is_token_used_rightly(job: JobRow) -> bool:
    """Whether the lease's token has the executions it should: one once a started run was cancelled, else none."""
    return job.token_runs == (job.state == JobState.CANCELLED and job.token is not None and job.has_started_at)


def _are_letters_right(job: JobRow) -> bool:
    """Whether a failed job has its letter, unless failed by override, and a one-shot job that did not fail has none open.

    Retention takes an acknowledged letter after a while; its job stays if it is recurring or holds its key for ever.
    """
    if job.state == JobState.FAILED:
        return job.standing_letters > 0 or job.done_reason == "overridden" or job.is_long_closed
    return job.cadence is not None or job.open_letters == 0


def _counters(job: JobRow) -> tuple[int, ...]:
    kept = (job.attempt, job.executions, job.crashes, job.consecutive_failures, job.completed_runs)
    beyond_zero = 0 if job.timeout_us is None else job.timeout_us - 1
    return (*kept, job.progress_count, job.result_count, job.target_count or 0, beyond_zero)


_STATE_RULES = (
    Rule("state", lambda job: job.state in STATES, "unknown state {row.state!r}"),
    Rule("task", lambda job: 1 <= len(job.task) <= MAX_NAME, "task {row.task!r} is empty or too long"),
    Rule("lane", lambda job: 1 <= len(job.lane) <= MAX_NAME, "lane {row.lane!r} is empty or too long"),
    Rule("booleans", lambda job: job.are_booleans_real, "a truth value is neither 0 nor 1"),
    Rule("priority", lambda job: job.priority >= job.base_priority, "priority {row.priority} is below {row.base_priority}"),
    Rule(
        "max_attempts",
        lambda job: job.max_attempts is None or 1 <= job.max_attempts <= MAX_ATTEMPTS,
        "max_attempts {row.max_attempts} is out of range",
    ),
    Rule("body", lambda job: job.bodies == 1, "has {row.bodies} bodies"),
)
"""What holds in any state. The names are those of the table's constraints where it has one."""

_JOB_RULES = (
    Rule(
        "wait_reason",
        lambda job: job.wait_reason is None or job.wait_reason in _WAIT_REASONS,
        "unknown wait_reason {row.wait_reason!r}",
    ),
    Rule("waiting", lambda job: (job.wait_reason is not None) == job.is_waiting, "{row.state} with reason {row.wait_reason!r}"),
    Rule("closed", lambda job: job.has_closed_at == job.is_closed, "{row.state} does not go with its closed_at"),
    Rule("paused", lambda job: job.has_paused_at == (job.state == JobState.PAUSED), "{row.state}, and paused_at says otherwise"),
    Rule("lease", _is_lease_legal, "{row.state} with token {row.token} of worker {row.worker!r}"),
    Rule(
        "run_marks",
        lambda job: job.is_running or not (job.stop_requested or job.has_rerun_at),
        "{row.state} with a mark that only a run has",
    ),
    Rule("rerun_slot", lambda job: job.has_rerun_at or not job.has_rerun_slot_at, "rerun_slot_at without rerun_at"),
    Rule("stop", lambda job: job.cadence is not None or not job.stop_requested, "stop_requested on a one-shot job"),
    Rule("held", lambda job: not job.held or job.state in _HOLDABLE, "held while {row.state}"),
    Rule("slot", lambda job: job.cadence is not None or not job.has_slot_at, "slot_at on a one-shot job"),
    Rule(
        "template",
        lambda job: not job.spawn or (job.cadence is not None and job.state not in _CLAIMED),
        "a template is {row.state} with cadence {row.cadence!r}",
    ),
    Rule("counters", lambda job: min(_counters(job)) >= 0, "a counter is below zero, or the timeout is"),
    Rule(
        "charges",
        # Each of these moves only with an execution number, and a fresh start takes them back alone; templates have no runs.
        lambda job: max(job.attempt, job.consecutive_failures, job.completed_runs * (not job.spawn)) <= job.executions,
        "more attempts, failures or successes than its {row.executions} executions",
    ),
    Rule(
        "unique_key",
        lambda job: job.unique_key is None or 1 <= len(job.unique_key) <= MAX_KEY,
        "unique_key {row.unique_key!r} is empty or too long",
    ),
    Rule(
        "unique_scope",
        lambda job: job.unique_scope is None if job.unique_key is None else job.unique_scope in _SCOPES,
        "unique_scope {row.unique_scope!r} with key {row.unique_key!r}",
    ),
    Rule(
        "unique_slot",
        lambda job: job.unique_slot is None or job.unique_slot == job.unique_key,
        "unique_slot {row.unique_slot!r} is not the key {row.unique_key!r}",
    ),
    Rule("slot_held", _is_slot_right, "{row.state}, scope {row.unique_scope}, with unique_slot {row.unique_slot!r}"),
    Rule(
        "name",
        lambda job: job.name is None or (1 <= len(job.name) <= MAX_SCHEDULE_NAME and job.cadence is not None),
        "name {row.name!r} is empty, too long or on a one-shot job",
    ),
    Rule("tokens", lambda job: job.tokens == job.kept, "{row.kept} runs share {row.tokens} tokens"),
    Rule("token_runs", _is_token_used_rightly, "{row.state} and its token has {row.token_runs} executions"),
    Rule(
        "last_run",
        lambda job: job.is_running or job.spawn or not job.has_started_at or job.has_last_run,
        "started_at is not that of execution {row.executions}",
    ),
    Rule("letters", _are_letters_right, "{row.state} with {row.standing_letters} letters, {row.open_letters} of them open"),
    Rule("one_letter", lambda job: job.open_letters <= 1, "{row.open_letters} open letters"),
    Rule("instants", lambda job: job.are_instants_real, "an instant is out of range"),
    Rule("expiry", lambda job: job.expires_after_claim, "the lease ends before its claim"),
    Rule("times", lambda job: job.is_running or job.finished_after_start, "finished_at is before started_at"),
)

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.cadence import ByHandler, Cron, Every, OnExhausted, Recurrence
from windlass.core.job import CLOSED, Claimed, JobState, RunReason, RunStatus, WaitReason
from windlass.core.outcome import (
    ERROR_LIMIT,
    NO_RUN,
    TRACE_LIMIT,
    Cancelled,
    Failure,
    Finish,
    LeaseExpired,
    Outcome,
    Raised,
    Released,
    Returned,
    Run,
    Snoozed,
    Stopped,
    decide,
    fingerprint,
)
from windlass.core.retry import PROFILES, Jitter, Profile, RetryPolicy, RetrySpec

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
CHOSEN = NOW + timedelta(hours=7)
MINUTE = timedelta(minutes=1)
HALF_HOUR = 30 * MINUTE
SLOT = NOW - 10 * MINUTE
BOOM = Failure("boom", "ValueError", "Traceback …")
MEASURED = Run(SLOT, NOW, log_excerpt="hello", cpu_time_ms=5, memory_peak_mb=6, items_crawled=7, items_indexed=8, metadata="{}")

ONE_SHOT = None
NEXT = Recurrence(cadence=Every(HALF_HOUR))
FAIL = Recurrence(cadence=Every(HALF_HOUR), on_exhausted=OnExhausted.FAIL)
FIXED = Recurrence(cadence=Every(HALF_HOUR), fixed_rate=True)
BY_HANDLER = Recurrence(cadence=ByHandler(2 * HALF_HOUR))

S = JobState
W = WaitReason
R = RunReason


def a_claim(recurrence: Recurrence | None = None, **given_values: Any) -> Claimed:
    """Make a job that failed twice in a row and lost one lease; profile `interval` waits without chance."""
    cadence = None if recurrence is None else recurrence.encode()
    usual = Claimed(
        id=41,
        task="crawl",
        lane="default",
        payload="{}",
        priority=0,
        run_at=SLOT,
        slot_at=None if recurrence is None else SLOT,
        attempt=2,
        max_attempts=4,
        execution=7,
        crashes=1,
        consecutive_failures=2,
        completed_runs=5,
        retry="interval",
        cadence=cadence,
        timeout_us=None,
        token=99,
        worker="tortoise",
        claimed_at=SLOT,
        lease_expires_at=NOW,
        subject=None,
        correlation_id=None,
        parent_id=None,
        last_cursor=None,
        progress_count=0,
        result_count=0,
        target_count=None,
    )
    return usual._replace(**given_values)


def ending_of(job: Claimed, outcome: Outcome, run: Run = NO_RUN) -> Finish:
    return decide(job, outcome, run, now=NOW, rng=Random(0))


class Ending(NamedTuple):
    """What a cell of the table expects; counters as changes, where None means back to zero."""

    state: JobState
    wait_reason: WaitReason | None = None
    attempt: int | None = 0
    executions: int = 0
    crashes: int | None = None
    consecutive_failures: int | None = 0
    completed_runs: int = 0
    status: RunStatus | None = None
    reason: RunReason | None = None
    run_at: timedelta | None = None
    delay: timedelta | None = None
    slot_at: timedelta | None = None
    has_letter: bool = False


def recurs(ending: Ending, after: timedelta) -> Ending:
    return ending._replace(state=S.SCHEDULED, wait_reason=W.RECURRENCE, attempt=None, run_at=after, slot_at=after)


RETURNED = Ending(S.COMPLETED, status=RunStatus.COMPLETED, consecutive_failures=None, completed_runs=1)
FAILED = Ending(S.FAILED, status=RunStatus.FAILED, reason=R.ERROR, consecutive_failures=1)
LOST = FAILED._replace(reason=R.LEASE_EXPIRED, crashes=1)
GIVEN_BACK = Ending(S.SCHEDULED, attempt=-1, status=RunStatus.CANCELLED)
BROKEN_OFF = GIVEN_BACK._replace(crashes=0)
UNSTARTED = Ending(S.SCHEDULED, attempt=-1, executions=-1, crashes=0)
STOPPED = Ending(S.CANCELLED, status=RunStatus.CANCELLED, reason=R.STOPPED)
STOPPED_UNSTARTED = UNSTARTED._replace(state=S.CANCELLED)
# Asked to stop and never heard of again: stopped, and a crash.
SILENT = STOPPED._replace(crashes=1)
GONE = STOPPED_UNSTARTED._replace(crashes=1)
# Delay after the third failure in a row: 60, 120, 240 seconds.
BACKED_OFF: dict[str, Any] = {
    "state": S.SCHEDULED,
    "wait_reason": W.RETRY,
    "attempt": None,
    "run_at": 4 * MINUTE,
    "slot_at": 4 * MINUTE,
}

ENDINGS = {
    "done": RETURNED,
    "back30": recurs(RETURNED, HALF_HOUR),
    "back20": recurs(RETURNED, HALF_HOUR - 10 * MINUTE),
    "back60": recurs(RETURNED, 2 * HALF_HOUR),
    "chosen": recurs(RETURNED, CHOSEN - NOW),
    # The claimed attempt is the second: 120 seconds.
    "retry": FAILED._replace(state=S.SCHEDULED, wait_reason=W.RETRY, delay=2 * MINUTE),
    "after90": FAILED._replace(state=S.SCHEDULED, wait_reason=W.RETRY, delay=1.5 * MINUTE),
    "dead": FAILED._replace(has_letter=True),
    "dead30": recurs(FAILED, HALF_HOUR)._replace(has_letter=True),
    "dead20": recurs(FAILED, HALF_HOUR - 10 * MINUTE)._replace(has_letter=True),
    "backoff": FAILED._replace(**BACKED_OFF),
    "wait90": FAILED._replace(**BACKED_OFF | {"run_at": 1.5 * MINUTE, "slot_at": 1.5 * MINUTE}),
    "lost": LOST._replace(state=S.SCHEDULED, wait_reason=W.LOST, run_at=timedelta()),
    "lostdead": LOST._replace(has_letter=True),
    "lost30": recurs(LOST, HALF_HOUR)._replace(has_letter=True),
    "lost20": recurs(LOST, HALF_HOUR - 10 * MINUTE)._replace(has_letter=True),
    "lostback": LOST._replace(**BACKED_OFF),
    "snooze": GIVEN_BACK._replace(wait_reason=W.SNOOZE, reason=R.SNOOZED, delay=5 * MINUTE),
    "released": BROKEN_OFF._replace(wait_reason=W.RELEASED, reason=R.RELEASED),
    "unstarted": UNSTARTED._replace(wait_reason=W.RELEASED),
    "crashed": UNSTARTED._replace(wait_reason=W.LOST, crashes=1, run_at=timedelta()),
    "cancelled": Ending(S.CANCELLED, status=RunStatus.CANCELLED, reason=R.CANCELLED),
    "stopped": STOPPED,
    "stopped30": recurs(STOPPED, HALF_HOUR),
    "stopped20": recurs(STOPPED, HALF_HOUR - 10 * MINUTE),
    "stopped60": recurs(STOPPED, 2 * HALF_HOUR),
    "unrun": STOPPED_UNSTARTED,
    "unrun30": recurs(STOPPED_UNSTARTED, HALF_HOUR),
    "unrun20": recurs(STOPPED_UNSTARTED, HALF_HOUR - 10 * MINUTE),
    "unrun60": recurs(STOPPED_UNSTARTED, 2 * HALF_HOUR),
    "silent": SILENT,
    "silent30": recurs(SILENT, HALF_HOUR),
    "silent20": recurs(SILENT, HALF_HOUR - 10 * MINUTE),
    "silent60": recurs(SILENT, 2 * HALF_HOUR),
    "gone": GONE,
    "gone30": recurs(GONE, HALF_HOUR),
    "gone20": recurs(GONE, HALF_HOUR - 10 * MINUTE),
    "gone60": recurs(GONE, 2 * HALF_HOUR),
}

COLUMNS = (ONE_SHOT, NEXT, FAIL, FIXED, BY_HANDLER)
LEFT, USED_UP = 2, 4
# Outcome, attempts, then what becomes of a job that is one-shot, recurring (next, fail, fixed rate) and by handler.
TABLE: list[tuple[Outcome, int, str]] = [
    (Returned("1"), LEFT, "done back30 back30 back20 back60"),
    (Returned("1"), USED_UP, "done back30 back30 back20 back60"),
    (Returned(run_again_at=CHOSEN), LEFT, "done chosen chosen chosen chosen"),
    (Returned(run_again_at=CHOSEN), USED_UP, "done chosen chosen chosen chosen"),
    (Raised(BOOM), LEFT, "retry retry retry retry backoff"),
    (Raised(BOOM), USED_UP, "dead dead30 dead dead20 backoff"),
    (Raised(BOOM, after=1.5 * MINUTE), LEFT, "after90 after90 after90 after90 wait90"),
    (Raised(BOOM, after=1.5 * MINUTE), USED_UP, "dead dead30 dead dead20 wait90"),
    (Raised(BOOM, is_final=True), LEFT, "dead dead30 dead dead20 backoff"),
    (Raised(BOOM, is_final=True), USED_UP, "dead dead30 dead dead20 backoff"),
    (Snoozed(5 * MINUTE), LEFT, "snooze snooze snooze snooze snooze"),
    (Snoozed(5 * MINUTE), USED_UP, "snooze snooze snooze snooze snooze"),
    (Cancelled("no need"), LEFT, "cancelled cancelled cancelled cancelled cancelled"),
    (Cancelled("no need"), USED_UP, "cancelled cancelled cancelled cancelled cancelled"),
    (Released(has_started=True), LEFT, "released released released released released"),
    (Released(has_started=True), USED_UP, "released released released released released"),
    (Released(has_started=False), LEFT, "unstarted unstarted unstarted unstarted unstarted"),
    (Released(has_started=False), USED_UP, "unstarted unstarted unstarted unstarted unstarted"),
    (Stopped(has_started=True), LEFT, "stopped stopped30 stopped30 stopped20 stopped60"),
    (Stopped(has_started=True), USED_UP, "stopped stopped30 stopped30 stopped20 stopped60"),
    (Stopped(has_started=False), LEFT, "unrun unrun30 unrun30 unrun20 unrun60"),
    (Stopped(has_started=False), USED_UP, "unrun unrun30 unrun30 unrun20 unrun60"),
    (LeaseExpired(has_started=True), LEFT, "lost lost lost lost lost"),
    (LeaseExpired(has_started=True), USED_UP, "lostdead lost30 lostdead lost20 lostback"),
    (LeaseExpired(has_started=False), LEFT, "crashed crashed crashed crashed crashed"),
    (LeaseExpired(has_started=False), USED_UP, "crashed crashed crashed crashed crashed"),
    (LeaseExpired(has_started=True, is_stopping=True), LEFT, "silent silent30 silent30 silent20 silent60"),
    (LeaseExpired(has_started=True, is_stopping=True), USED_UP, "silent silent30 silent30 silent20 silent60"),
    (LeaseExpired(has_started=False, is_stopping=True), LEFT, "gone gone30 gone30 gone20 gone60"),
    (LeaseExpired(has_started=False, is_stopping=True), USED_UP, "gone gone30 gone30 gone20 gone60"),
]
CELLS = [
    (outcome, attempt, recurrence, word)
    for outcome, attempt, words in TABLE
    for recurrence, word in zip(COLUMNS, words.split(), strict=True)
]


def moved(value: int, change: int | None) -> int:
    return 0 if change is None else value + change


def from_now(after: timedelta | None) -> datetime | None:
    return None if after is None else NOW + after


def observed(finish: Finish) -> Finish:
    """Keep what the table speaks of."""
    letter = None if finish.fingerprint is None else "letter"
    return finish._replace(failure=None, fingerprint=letter, result=None, done_reason=None)


def expected(job: Claimed, ending: Ending) -> Finish:
    return Finish(
        id=41,
        token=99,
        state=ending.state,
        wait_reason=ending.wait_reason,
        attempt=moved(job.attempt, ending.attempt),
        executions=7 + ending.executions,
        crashes=moved(1, ending.crashes),
        consecutive_failures=moved(2, ending.consecutive_failures),
        completed_runs=5 + ending.completed_runs,
        status=ending.status,
        reason=ending.reason,
        run_at=from_now(ending.run_at),
        delay=ending.delay,
        slot_at=from_now(ending.slot_at),
        fingerprint="letter" if ending.has_letter else None,
    )


@pytest.mark.parametrize(("outcome", "attempt", "recurrence", "word"), CELLS)
def test_every_outcome_ends_each_kind_of_job_as_the_table_says(
    outcome: Outcome, attempt: int, recurrence: Recurrence | None, word: str
) -> None:
    job = a_claim(recurrence, attempt=attempt)
    assert observed(ending_of(job, outcome)) == expected(job, ENDINGS[word])


@pytest.mark.parametrize("reason", [R.ERROR, R.TIMED_OUT, R.WORKER_CRASHED])
def test_a_failed_run_keeps_its_own_reason(reason: RunReason) -> None:
    finish = ending_of(a_claim(), Raised(BOOM._replace(reason=reason)))
    assert (finish.status, finish.reason, finish.failure) == (RunStatus.FAILED, reason, BOOM._replace(reason=reason))


def test_a_return_keeps_the_result_and_what_was_measured() -> None:
    finish = ending_of(a_claim(), Returned('{"n":1}', done_reason="target_reached"), MEASURED)
    assert (finish.result, finish.done_reason, finish.run) == ('{"n":1}', "target_reached", MEASURED)


@pytest.mark.parametrize("outcome", [Raised(BOOM), Snoozed(MINUTE), Cancelled(), Released(has_started=True), Stopped()])
def test_every_run_that_started_keeps_what_was_measured(outcome: Outcome) -> None:
    assert ending_of(a_claim(), outcome, MEASURED).run == MEASURED


@pytest.mark.parametrize("outcome", [Released(), Stopped(has_started=False), LeaseExpired(has_started=False)])
def test_a_run_that_never_started_has_nothing_to_record(outcome: Outcome) -> None:
    finish = ending_of(a_claim(), outcome, MEASURED)
    assert (finish.status, finish.reason, finish.failure, finish.run) == (None, None, None, NO_RUN)


def test_a_lost_lease_names_the_worker_that_held_it() -> None:
    failure = ending_of(a_claim(), LeaseExpired(has_started=True)).failure
    assert failure == Failure("worker tortoise stopped renewing its lease", "LeaseExpired", None, R.LEASE_EXPIRED)


def test_a_retry_asked_for_at_once_waits_for_nothing() -> None:
    assert ending_of(a_claim(), Raised(BOOM, after=timedelta())).delay == timedelta()


def last_of(times: int, job: Claimed, outcome: Outcome) -> Finish:
    """Claim and end a job so often, and give the last ending."""
    finish = ending_of(job, outcome)
    for _ in range(times - 1):
        job = job._replace(attempt=finish.attempt + 1, execution=finish.executions + 1, crashes=finish.crashes)
        finish = ending_of(job, outcome)
    return finish


def test_a_job_that_snoozes_for_ever_never_uses_up_its_attempts() -> None:
    finish = last_of(50, a_claim(attempt=1, max_attempts=1), Snoozed(MINUTE))
    assert (finish.state, finish.attempt, finish.executions) == (S.SCHEDULED, 0, 56)


def test_a_job_that_kills_its_workers_ends_as_a_dead_letter() -> None:
    finish = last_of(3, a_claim(attempt=1, max_attempts=3, crashes=0), LeaseExpired(has_started=True))
    assert (finish.state, finish.crashes, finish.reason) == (S.FAILED, 3, R.LEASE_EXPIRED)
    assert finish.fingerprint is not None


def test_the_last_of_its_attempts_ends_a_one_shot_job() -> None:
    states = [ending_of(a_claim(attempt=attempt, max_attempts=3), Raised(BOOM)).state for attempt in (1, 2, 3, 4)]
    assert states == [S.SCHEDULED, S.SCHEDULED, S.FAILED, S.FAILED]


# The default attempts of each profile.
@pytest.mark.parametrize(("profile", "attempts"), [("crawl", 4), ("interval", 4), ("task", 3), ("pull", 5)])
def test_a_job_without_its_own_limit_has_its_profiles(profile: str, attempts: int) -> None:
    job = a_claim(retry=profile, max_attempts=None)
    assert ending_of(job._replace(attempt=attempts - 1), Raised(BOOM)).state is S.SCHEDULED
    assert ending_of(job._replace(attempt=attempts), Raised(BOOM)).state is S.FAILED


def test_what_the_row_leaves_open_follows_the_settings_of_the_moment() -> None:
    policy = RetryPolicy(base=timedelta(seconds=7), cap=MINUTE, mode=Jitter.NONE)
    settings = {**PROFILES, "pull": Profile(policy=policy, max_attempts=9)}
    job = a_claim(retry="pull", max_attempts=None, attempt=8)
    finish = decide(job._replace(attempt=1), Raised(BOOM), now=NOW, rng=Random(0), profiles=settings)
    assert finish.delay == timedelta(seconds=7)
    assert decide(job, Raised(BOOM), now=NOW, rng=Random(0), profiles=settings).state is S.SCHEDULED
    assert decide(job._replace(attempt=9), Raised(BOOM), now=NOW, rng=Random(0), profiles=settings).state is S.FAILED


def test_the_delay_of_the_row_beats_its_profile() -> None:
    job = a_claim(retry=RetrySpec(profile="interval", base=timedelta(seconds=5)).encode())
    assert ending_of(job, Raised(BOOM)).delay == timedelta(seconds=10)


def test_the_retry_delays_of_the_interval_scheduler_follow_the_attempt() -> None:
    job = a_claim(max_attempts=100)
    delays = [ending_of(job._replace(attempt=attempt), Raised(BOOM)).delay for attempt in range(1, 9)]
    assert delays == [timedelta(seconds=seconds) for seconds in (60, 120, 240, 480, 960, 1920, 3600, 3600)]


def test_a_schedule_that_goes_on_waits_for_the_later_of_slot_and_delay() -> None:
    job = a_claim(Recurrence(cadence=Every(MINUTE)), attempt=4)
    finish = ending_of(job, Raised(BOOM))
    assert (finish.run_at, finish.slot_at) == (NOW + 4 * MINUTE, NOW + MINUTE)


@pytest.mark.parametrize(("failures", "minutes"), [(0, 1), (1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (10**6, 60)])
def test_a_by_handler_job_waits_longer_with_each_failure_and_never_dies(failures: int, minutes: int) -> None:
    job = a_claim(BY_HANDLER, consecutive_failures=failures, attempt=1, max_attempts=1)
    finish = ending_of(job, Raised(BOOM))
    assert (finish.state, finish.consecutive_failures, finish.run_at) == (S.SCHEDULED, failures + 1, NOW + minutes * MINUTE)


def test_cron_comes_back_at_its_next_slot() -> None:
    finish = ending_of(a_claim(Recurrence(cadence=Cron("@daily"), timezone="Europe/Berlin")), Returned())
    assert finish.run_at == finish.slot_at == datetime(2026, 3, 2, 23, tzinfo=UTC)


@pytest.mark.parametrize("outcome", [Raised(BOOM), Snoozed(MINUTE), Released(), Released(has_started=True)])
def test_what_is_no_new_slot_keeps_the_old_one(outcome: Outcome) -> None:
    assert ending_of(a_claim(NEXT), outcome).slot_at is None


LAST_RUN = Recurrence(cadence=Every(HALF_HOUR), max_runs=6)
LAST_SLOT = Recurrence(cadence=Every(HALF_HOUR), end_at=NOW + HALF_HOUR - MINUTE)


@pytest.mark.parametrize("recurrence", [LAST_RUN, LAST_SLOT])
def test_a_schedule_that_has_ended_completes(recurrence: Recurrence) -> None:
    finish = ending_of(a_claim(recurrence), Returned())
    assert (finish.state, finish.wait_reason, finish.run_at, finish.slot_at) == (S.COMPLETED, None, None, None)
    assert (finish.done_reason, finish.completed_runs) == ("ended", 6)


def test_a_time_the_handler_chose_after_the_end_completes_the_job() -> None:
    recurrence = Recurrence(cadence=ByHandler(), end_at=CHOSEN - MINUTE)
    assert ending_of(a_claim(recurrence), Returned(run_again_at=CHOSEN)).state is S.COMPLETED


def test_a_schedule_that_has_ended_with_a_failure_is_dead() -> None:
    finish = ending_of(a_claim(LAST_SLOT, attempt=4), Raised(BOOM))
    assert (finish.state, finish.run_at, finish.status) == (S.FAILED, None, RunStatus.FAILED)
    assert finish.fingerprint is not None


def test_a_failed_run_does_not_count_towards_the_runs_of_a_schedule() -> None:
    finish = ending_of(a_claim(LAST_RUN, attempt=4), Raised(BOOM))
    assert (finish.state, finish.completed_runs) == (S.SCHEDULED, 5)


def test_a_schedule_that_has_ended_with_a_stop_completes() -> None:
    finish = ending_of(a_claim(LAST_SLOT), Stopped())
    assert (finish.state, finish.status, finish.reason, finish.done_reason) == (
        S.COMPLETED,
        RunStatus.CANCELLED,
        R.STOPPED,
        "ended",
    )


def test_a_by_handler_job_does_not_back_off_beyond_its_end() -> None:
    recurrence = Recurrence(cadence=ByHandler(), end_at=NOW - MINUTE)
    assert ending_of(a_claim(recurrence), Raised(BOOM)).state in CLOSED


@pytest.mark.parametrize(
    ("outcome", "done_reason"),
    [(Cancelled("no need"), "no need"), (Cancelled(), "cancelled"), (Cancelled(""), "cancelled"), (Stopped(), "stopped")],
)
def test_a_job_that_is_called_off_says_why(outcome: Outcome, done_reason: str) -> None:
    assert ending_of(a_claim(), outcome).done_reason == done_reason


def test_a_failure_without_a_message_shows_its_kind() -> None:
    failure = ending_of(a_claim(), Raised(Failure("", "KeyError"))).failure
    assert failure == Failure("KeyError", "KeyError")


def test_a_stripped_finish_keeps_the_decision_and_no_content() -> None:
    full = ending_of(a_claim(NEXT, attempt=4), Raised(Failure("naïve \U0001f577", "Éclair", "trace")), MEASURED)
    bare = full.stripped()
    assert bare.failure == Failure("na?ve ?", "Error", None, R.ERROR)
    assert bare.run == Run(SLOT, NOW)
    assert bare._replace(failure=None, run=NO_RUN) == full._replace(failure=None, run=NO_RUN)


def test_a_stripped_success_has_no_result_and_no_failure() -> None:
    bare = ending_of(a_claim(), Returned('{"n":1}', done_reason="worker_done"), MEASURED).stripped()
    assert (bare.state, bare.status, bare.result, bare.failure, bare.done_reason) == (
        S.COMPLETED,
        RunStatus.COMPLETED,
        None,
        None,
        None,
    )


def test_a_buried_finish_fails_the_job_and_says_why() -> None:
    buried = ending_of(a_claim(NEXT), Returned('{"n":1}'), MEASURED).buried("constraint \0 naïve " + "x" * 1000)
    assert (buried.id, buried.token, buried.state, buried.status, buried.reason) == (41, 99, S.FAILED, RunStatus.FAILED, R.ERROR)
    assert (buried.wait_reason, buried.run_at, buried.delay, buried.slot_at, buried.result, buried.run) == (*[None] * 5, NO_RUN)
    assert buried.fingerprint is not None
    assert buried.failure is not None
    assert buried.failure.message.startswith("the database refused the finish record: constraint ? na?ve x")
    assert len(buried.failure.message) == 500


def test_a_buried_finish_of_a_run_that_never_started_does_not_free_the_number_it_writes() -> None:
    assert ending_of(a_claim(), Released()).buried("why").executions == 7


SAME_KIND = [
    ("row 17 of 9", "row 4711 of 12"),
    ("at 0x7f3a9c", "at 0xDEADBEEF00"),
    ("no feed 3f2504e0-4f89-41d3-9a0c-0305e82c3301", "no feed ABCDEFab-cdef-abcd-efab-cdefabcdefab"),
    ("2026-03-02T12:00:00Z: timed out after 30s", "2027-11-30T01:02:03Z: timed out after 5s"),
]


@pytest.mark.parametrize(("one", "other"), SAME_KIND)
def test_messages_that_differ_in_numbers_and_ids_are_one_kind(one: str, other: str) -> None:
    assert fingerprint("crawl", Failure(one)) == fingerprint("crawl", Failure(other))


@given(st.integers(min_value=0), st.integers(min_value=0), st.uuids(), st.uuids())
def test_no_number_or_uuid_changes_a_fingerprint(number: int, other: int, key: UUID, another: UUID) -> None:
    one = fingerprint("crawl", Failure(f"feed {key}: item {number} at {number:#x}"))
    assert one == fingerprint("crawl", Failure(f"feed {another}: item {other} at {other:#x}"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no feed 3f2504e04f8941d39a0c0305e82c3301", "no feed abcdefabcdefabcdefabcdefabcdefab"),
        ("timed out after 1.5s", "timed out after 2s"),
    ],
)
def test_messages_that_differ_in_a_bare_digest_or_a_fraction_are_one_kind(one: str, other: str) -> None:
    assert fingerprint("crawl", Failure(one)) == fingerprint("crawl", Failure(other))


def test_a_long_message_is_one_kind_whatever_the_width_of_its_numbers() -> None:
    tail = "abcdefghij" * 60
    assert fingerprint("crawl", Failure(f"row 1 {tail}")) == fingerprint("crawl", Failure(f"row 4711 {tail}"))


@pytest.mark.parametrize(
    ("task", "failure"),
    [("index", BOOM), ("crawl", BOOM._replace(kind="KeyError")), ("crawl", BOOM._replace(message="bang"))],
)
def test_another_task_kind_or_message_is_another_fingerprint(task: str, failure: Failure) -> None:
    assert fingerprint(task, failure) != fingerprint("crawl", BOOM)


def test_a_stack_trace_does_not_change_a_fingerprint() -> None:
    assert fingerprint("crawl", BOOM) == fingerprint("crawl", BOOM._replace(trace=None))


ODD_TEXTS = st.builds(
    lambda text, times: text * times,
    st.text(alphabet=st.characters(exclude_categories=()) | st.sampled_from("\0\ud800\udfff\U0001f577"), max_size=40),
    st.sampled_from([1, 1, 1, 200, 5000]),
)
FAILURES = st.builds(
    Failure,
    message=ODD_TEXTS,
    kind=ODD_TEXTS,
    trace=st.none() | ODD_TEXTS,
    reason=st.sampled_from([R.ERROR, R.TIMED_OUT, R.WORKER_CRASHED]),
)
DELAYS = st.timedeltas(min_value=timedelta(), max_value=timedelta(days=36_525))
INSTANTS = st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2040, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - the strategy adds the zone
OUTCOMES: st.SearchStrategy[Outcome] = st.one_of(
    st.builds(Returned, result=st.none() | st.just("{}"), run_again_at=st.none() | INSTANTS),
    st.builds(Raised, FAILURES, after=st.none() | DELAYS, is_final=st.booleans()),
    st.builds(Snoozed, DELAYS),
    st.builds(Cancelled, ODD_TEXTS),
    st.builds(Released, has_started=st.booleans()),
    st.builds(Stopped, has_started=st.booleans()),
    st.builds(LeaseExpired, has_started=st.booleans(), is_stopping=st.booleans()),
)
RECURRENCES = st.builds(
    Recurrence,
    cadence=st.sampled_from([Every(HALF_HOUR), Cron("@daily"), Cron("30 2 * * *"), ByHandler()]),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    fixed_rate=st.booleans(),
    on_exhausted=st.sampled_from(OnExhausted),
    end_at=st.none() | INSTANTS,
    max_runs=st.none() | st.integers(min_value=1, max_value=20),
)
COUNTS = st.integers(min_value=0, max_value=10**6)
CLAIMS = st.builds(
    a_claim,
    st.none() | RECURRENCES,
    task=st.text(min_size=1, max_size=5),
    slot_at=st.none() | INSTANTS,
    attempt=st.integers(min_value=1, max_value=8),
    max_attempts=st.none() | st.integers(min_value=1, max_value=8),
    execution=st.integers(min_value=1, max_value=10**6),
    crashes=COUNTS,
    consecutive_failures=COUNTS,
    completed_runs=COUNTS,
    retry=st.sampled_from(sorted(PROFILES)),
    worker=ODD_TEXTS,
)


def has_started(outcome: Outcome) -> bool:
    return getattr(outcome, "has_started", True)


def texts_of(finish: Finish) -> dict[str, tuple[str, int]]:
    """Give each text of a finish with the most bytes it may have."""
    failure = finish.failure
    texts = {"done_reason": (finish.done_reason or "", ERROR_LIMIT)}
    if failure is not None:
        texts |= {
            "message": (failure.message, ERROR_LIMIT),
            "kind": (failure.kind, 200),
            "trace": (failure.trace or "", TRACE_LIMIT),
        }
    return texts


@given(CLAIMS, OUTCOMES)
def test_a_finish_is_for_the_claim_it_was_decided_on(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert (finish.id, finish.token) == (job.id, job.token)
    for lesser in (finish.stripped(), finish.buried("why")):
        assert (lesser.id, lesser.token) == (job.id, job.token)


@given(CLAIMS, OUTCOMES)
def test_no_outcome_charges_more_than_the_claimed_attempt(job: Claimed, outcome: Outcome) -> None:
    assert 0 <= ending_of(job, outcome).attempt <= job.attempt


@given(CLAIMS, OUTCOMES)
def test_a_run_leaves_an_execution_and_uses_its_number_if_and_only_if_it_started(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert (finish.status is not None) is has_started(outcome)
    assert finish.executions == (job.execution if has_started(outcome) else job.execution - 1)
    assert (finish.reason is None) is (finish.status in {None, RunStatus.COMPLETED})


@given(CLAIMS, OUTCOMES)
def test_a_waiting_job_says_why_it_waits_and_a_closed_one_does_not_wait(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert (finish.wait_reason is None) is (finish.state in CLOSED)
    if finish.state in CLOSED:
        assert (finish.run_at, finish.delay, finish.slot_at) == (None, None, None)
    assert finish.run_at is None or finish.delay is None


@given(CLAIMS, OUTCOMES)
def test_every_ending_is_a_legal_move_of_a_running_job(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert finish.state in {S.COMPLETED, S.FAILED, S.SCHEDULED, S.CANCELLED}


@given(CLAIMS, OUTCOMES)
def test_a_dead_letter_is_written_for_every_job_that_failed_for_good(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert finish.state is not S.FAILED or finish.fingerprint is not None
    assert finish.fingerprint is None or finish.status is RunStatus.FAILED
    assert (finish.failure is not None) is (finish.status is RunStatus.FAILED)


@given(CLAIMS, OUTCOMES)
def test_counters_move_by_at_most_one_or_start_anew(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    assert finish.crashes in {0, job.crashes, job.crashes + 1}
    assert finish.consecutive_failures in {0, job.consecutive_failures, job.consecutive_failures + 1}
    assert finish.completed_runs - job.completed_runs == (finish.status is RunStatus.COMPLETED)


@given(CLAIMS, OUTCOMES)
def test_odd_and_huge_texts_are_bounded_and_fit_both_databases(job: Claimed, outcome: Outcome) -> None:
    finish = ending_of(job, outcome)
    for ending in (finish, finish.stripped(), finish.buried("\ud800\0" * 5000)):
        for text, limit in texts_of(ending).values():
            assert "\0" not in text
            assert len(text.encode()) <= limit


@given(CLAIMS, OUTCOMES, st.integers())
def test_the_same_chance_decides_the_same(job: Claimed, outcome: Outcome, seed: int) -> None:
    assert decide(job, outcome, now=NOW, rng=Random(seed)) == decide(job, outcome, now=NOW, rng=Random(seed))

"""The rules of a pull worker's report, over the model's rows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from tests.model.model import Ending, Model, Row, Told
from tests.model.verdict import PastRun
from windlass.core.item import Added
from windlass.core.job import CLOSED, JobState, RunReason
from windlass.core.outcome import Failure, Raised, Returned
from windlass.core.report import Report, ReportAnswer
from windlass.errors import JobNotFound, LeaseLost, TokenNeeded

S = JobState


class Reports:
    """The answers that were given under a key, and the items found for each task."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._answers: dict[tuple[int, str], tuple[int | None, ReportAnswer]] = {}
        self._found: dict[str, set[str]] = {}

    def add(self, number: int, token: int, phones: list[str], now: datetime) -> Added:
        """Add items under a lease."""
        row = self._row(number)
        if row.state is not S.RUNNING or row.token != token:
            raise LeaseLost(number)
        return self._add(row, phones, now)

    def _row(self, number: int) -> Row:
        if number not in self._model.jobs:
            raise JobNotFound(number)
        return self._model.jobs[number]

    def _add(self, row: Row, phones: list[str], now: datetime) -> Added:
        known = self._found.setdefault(row.task, set())
        before = len(known)
        known.update(phones)
        added = len(known) - before
        row.progress_count += len(phones)
        row.result_count += added
        row.last_progress_at = now
        row.run_started_at = row.run_started_at or now
        return Added(added, len(phones) - added)

    def report(self, told: Report, now: datetime) -> ReportAnswer:
        """Do all of it, once for each key."""
        row = self._row(told.job_id)
        token, known = self._answers.get((row.id, told.key or ""), (None, None))
        # A key goes with the run under whose lease it was used.
        if known is not None and token not in self._model.pruned_tokens:
            return replace(known, is_repeated=True)
        _fence(row, told)
        if row.state in {S.COMPLETED, S.FAILED}:
            return ReportAnswer(state=row.state, is_done=True, done_reason=row.done_reason)
        token = row.token
        answer = self._stop(row, now) if row.state is S.CANCELLED else self._hear(row, told, now)
        if told.key is not None:
            self._answers[row.id, told.key] = token, answer
        return answer

    def _stop(self, row: Row, now: datetime) -> ReportAnswer:
        if row.token is not None:
            self._model.stop([Told(row.id, row.token, None)], now)
        return ReportAnswer(state=row.state, is_done=True, done_reason=row.done_reason, should_stop=True)

    def _hear(self, row: Row, told: Report, now: datetime) -> ReportAnswer:
        added, duplicates = self._add(row, [item["phone"] for item in told.items], now)
        row.last_cursor = told.cursor or row.last_cursor
        extension = min(max((told.extend or timedelta(seconds=120)).total_seconds(), 60), 600)
        row.lease_expires_at = max(row.lease_expires_at or now, now + timedelta(seconds=extension))
        outcome = _outcome(row, told)
        if outcome is None:
            lease, stops = row.lease_expires_at, row.stop_requested
            return ReportAnswer(state=row.state, added=added, duplicates=duplicates, lease_expires_at=lease, should_stop=stops)
        self._model.finish([Ending(row.claimed(), outcome, None, now)], now)
        is_done = isinstance(outcome, Returned) or row.state in CLOSED
        why = outcome.done_reason if isinstance(outcome, Returned) else None
        return ReportAnswer(state=row.state, added=added, duplicates=duplicates, is_done=is_done, done_reason=why)


def _outcome(row: Row, told: Report) -> Returned | Raised | None:
    if told.error:
        return Raised(Failure(told.error))
    if row.target_count is not None and row.result_count >= row.target_count:
        return Returned(done_reason="target_reached")
    if told.is_done:
        return Returned(done_reason="worker_done" if row.target_count is None else "no_more_results")
    return None


def _fence(row: Row, told: Report) -> None:
    last = next((run for run in row.runs if run.number == row.executions), None)
    if row.token is not None:
        _fence_by_lease(row, told)
    elif row.state in {S.COMPLETED, S.FAILED}:
        if told.token is not None and not (
            _is_of(last, told) and last is not None and last.reason is not RunReason.LEASE_EXPIRED
        ):
            raise LeaseLost(row.id)
    elif row.state is not S.CANCELLED or not _is_of(last, told):
        raise LeaseLost(row.id)


def _fence_by_lease(row: Row, told: Report) -> None:
    if told.token is not None:
        if told.token != row.token:
            raise LeaseLost(row.id)
        return
    if told.worker != row.worker:
        raise LeaseLost(row.id)
    if any(run.worker == told.worker and run.token != row.token for run in row.runs):
        raise TokenNeeded(row.id, told.worker)


def _is_of(last: PastRun | None, told: Report) -> bool:
    if last is None:
        return False
    return last.worker == told.worker if told.token is None else last.token == told.token

"""The outcome of a run whose handler did not simply return."""

from __future__ import annotations

from datetime import datetime
from random import Random
from typing import NamedTuple

from windlass.core.job import Claimed, RunReason
from windlass.core.outcome import Cancelled, Failure, Outcome, Raised, Snoozed
from windlass.core.signals import Cancel, Discard, Retry, Snooze, counts_for_breaker
from windlass.core.task import TaskSpec
from windlass.errors import BreakerOpen, InvalidPayload
from windlass.worker.failure import failure_of
from windlass.worker.wire import ChildRaised, Crashed


class Verdict(NamedTuple):
    """An outcome, and whether it counts as a failure for the task's breaker."""

    outcome: Outcome
    is_failure: bool = True


class Judge(NamedTuple):
    """What judging needs besides the error."""

    spec: TaskSpec
    job: Claimed
    rng: Random
    now: datetime

    def of_error(self, error: BaseException, failure: Failure | None = None) -> Verdict:
        """Return the outcome of an error; `failure` describes it where the error itself stayed in a child process."""
        failed = failure or failure_of(error)
        is_failure = counts_for_breaker(error)
        match error:
            case Snooze():
                return Verdict(Snoozed(error.delay), is_failure)
            case Cancel():
                return Verdict(Cancelled(error.reason), is_failure)
            case BreakerOpen():
                return Verdict(Snoozed(error.probe_at - self.now), is_failure)
            case Discard() | InvalidPayload():
                return Verdict(Raised(failed, is_final=True), is_failure)
            case Retry():
                return Verdict(Raised(failed, after=error.after), is_failure)
        place = next((place for place, (kind, _) in enumerate(self.spec.retry_by_error) if isinstance(error, kind)), None)
        return self._by_policy(failed, place, is_final=isinstance(error, self.spec.never_retry))._replace(is_failure=is_failure)

    def of_child(self, raised: ChildRaised) -> Verdict:
        """Return the outcome of an error in a child process."""
        failure = Failure(raised.message, raised.kind, raised.trace)
        if raised.error is not None:
            return self.of_error(raised.error, failure)
        if raised.is_bad_payload:
            return Verdict(Raised(failure, is_final=True), is_failure=False)
        return self._by_policy(failure, raised.policy, is_final=raised.is_final)

    def _by_policy(self, failure: Failure, place: int | None, *, is_final: bool) -> Verdict:
        if place is None:
            return Verdict(Raised(failure, is_final=is_final))
        policy = self.spec.retry_by_error[place][1]
        return Verdict(Raised(failure, after=policy.delay(self.job.attempt, self.rng)))

    def of_crash(self, crashed: Crashed) -> Verdict:
        """Return the outcome of a child process that died."""
        return Verdict(Raised(Failure(crashed.text, "WorkerCrashed", reason=RunReason.WORKER_CRASHED)))

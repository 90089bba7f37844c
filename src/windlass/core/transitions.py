"""The table of operator moves: from which states each is legal, and where it leads."""

from __future__ import annotations

from typing import NamedTuple

from windlass.core.job import RETRIED, Job, JobState
from windlass.errors import InvalidTransition, JobNotFound, LeaseHeld

S = JobState
_OPEN = frozenset({S.SCHEDULED, S.PENDING, S.PAUSED, S.RUNNING})


class LegalMove(NamedTuple):
    """Where a move of an operator leads, and the states it may start from; the statements take these conditions from here."""

    target: JobState
    """What an error names beside the state it met."""
    sources: frozenset[JobState] = frozenset()
    recurring: frozenset[JobState] = frozenset()
    """From these too, if the job is recurring."""
    retrying: frozenset[JobState] = frozenset()
    """From these too, if the job waits because a run of it failed or was lost."""

    @property
    def has_sources(self) -> bool:
        """Whether its states alone decide when it is legal."""
        return bool(self.sources or self.recurring or self.retrying)

    def allows(self, job: Job) -> bool:
        """Whether the state of a job permits it."""
        is_retrying = job.wait_reason in RETRIED
        return (
            job.state in self.sources
            or (job.cadence is not None and job.state in self.recurring)
            or (is_retrying and job.state in self.retrying)
        )


MOVES: dict[str, LegalMove] = {
    "cancel": LegalMove(S.CANCELLED, _OPEN),
    "stop": LegalMove(S.SCHEDULED, recurring=frozenset({S.RUNNING})),
    "pause": LegalMove(S.PAUSED, frozenset({S.SCHEDULED}), recurring=frozenset({S.PENDING})),
    "resume": LegalMove(S.SCHEDULED, frozenset({S.PAUSED})),
    "disable": LegalMove(S.PAUSED, frozenset({S.SCHEDULED, S.PAUSED, S.RUNNING}), recurring=frozenset({S.PENDING})),
    "enable": LegalMove(S.SCHEDULED, _OPEN),
    "run now": LegalMove(S.PENDING, _OPEN),
    "retry": LegalMove(S.PENDING, frozenset({S.FAILED}), retrying=frozenset({S.SCHEDULED})),
    "edit": LegalMove(S.SCHEDULED, _OPEN | {S.FAILED}),
    "boost": LegalMove(S.SCHEDULED, _OPEN | {S.FAILED}),
    "set priority": LegalMove(S.SCHEDULED, _OPEN | {S.FAILED}),
    "bury": LegalMove(S.FAILED, frozenset({S.PENDING, S.SCHEDULED})),
    # What these ask is more than a state: a lease, a key that is free, a job to copy.
    "clone": LegalMove(S.PENDING),
    "fail": LegalMove(S.FAILED),
    "take lease": LegalMove(S.SCHEDULED),
    "override": LegalMove(S.PENDING),
}


class Moved(NamedTuple):
    """What an operator move did: the rows its own statement left, and the jobs it refused."""

    move: str
    changed: tuple[Job, ...]
    refused: tuple[Job, ...]
    missing: tuple[int, ...]
    target: JobState | None = None
    """Where the move was to lead, when its name alone does not show it."""

    def one(self) -> Job:
        """Return the one changed job, or raise what kept it from changing."""
        if self.changed:
            return self.changed[0]
        if self.refused:
            job = self.refused[0]
            if self.move == "delete":
                raise LeaseHeld(job.id, job.worker)
            raise InvalidTransition(job.id, self.move, job.state, self.target or MOVES[self.move].target)
        raise JobNotFound(self.missing[0])

"""The table of legal moves between job states, and the operator moves over it."""

from __future__ import annotations

from typing import NamedTuple

from windlass.core.job import Job, JobState
from windlass.errors import InvalidTransition, JobNotFound, LeaseHeld

S = JobState

TRANSITIONS: dict[JobState, frozenset[JobState]] = {
    S.PENDING: frozenset({S.RUNNING, S.SCHEDULED, S.PAUSED, S.FAILED, S.CANCELLED}),
    S.SCHEDULED: frozenset({S.PENDING, S.RUNNING, S.PAUSED, S.FAILED, S.CANCELLED}),
    S.RUNNING: frozenset({S.COMPLETED, S.FAILED, S.SCHEDULED, S.CANCELLED}),
    S.PAUSED: frozenset({S.SCHEDULED, S.CANCELLED}),
    S.COMPLETED: frozenset({S.SCHEDULED}),
    S.FAILED: frozenset({S.PENDING}),
    S.CANCELLED: frozenset({S.PENDING}),
}
"""Legal moves. pending → paused and completed → scheduled are for recurring jobs only; cancelled → pending is `ensure`'s."""

TARGETS: dict[str, JobState] = {
    "cancel": S.CANCELLED,
    "stop": S.SCHEDULED,
    "pause": S.PAUSED,
    "resume": S.SCHEDULED,
    "disable": S.PAUSED,
    "enable": S.SCHEDULED,
    "run now": S.PENDING,
    "retry": S.PENDING,
    "edit": S.SCHEDULED,
    "boost": S.SCHEDULED,
    "set priority": S.SCHEDULED,
    "clone": S.PENDING,
    "bury": S.FAILED,
    "fail": S.FAILED,
    "take lease": S.SCHEDULED,
    "override": S.PENDING,
}
"""Where each operator move leads: what an error names beside the state it met."""


def is_legal(state: JobState, target: JobState, *, is_recurring: bool = True) -> bool:
    """Whether the table has this move."""
    if not is_recurring and (state, target) in {(S.PENDING, S.PAUSED), (S.COMPLETED, S.SCHEDULED)}:
        return False
    return target in TRANSITIONS[state]


class Moved(NamedTuple):
    """What an operator move did: the rows its own statement left, and the jobs it refused."""

    move: str
    changed: tuple[Job, ...]
    refused: tuple[Job, ...]
    missing: tuple[int, ...]
    target: JobState | None = None
    """Where the move was to lead, when its name alone does not say it."""

    def one(self) -> Job:
        """Return the one changed job, or raise what kept it from changing."""
        if self.changed:
            return self.changed[0]
        if self.refused:
            job = self.refused[0]
            if self.move == "delete":
                raise LeaseHeld(job.id, job.worker)
            raise InvalidTransition(job.id, self.move, job.state, self.target or TARGETS[self.move])
        raise JobNotFound(self.missing[0])

"""Lanes and tasks as gates: paused, resumed and drained."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from windlass.core.checks import check_text
from windlass.core.job import MAX_NAME, JobState
from windlass.core.record import record

ALL_LANES = "*"
"""The name that pauses and resumes every lane, also those that come later; a lane's own pause stays beside it."""
BUILT_IN_LANES = frozenset({"default", "fast", "pull"})


class GateKind(StrEnum):
    """What is paused: every job of a lane, or every job of a task."""

    LANE = "lane"
    TASK = "task"

    def check(self, name: object) -> None:
        """Refuse a name that no lane or task can have."""
        check_text(self.value, name, MAX_NAME)


class Gate(NamedTuple):
    """A lane or task as a pause or resume left it."""

    name: str
    is_paused: bool
    paused_by: str | None
    is_changed: bool


class Drain(NamedTuple):
    """How many leases a paused lane or task still has; while it is not settled, a claim may still be under way."""

    name: str
    running: int
    is_settled: bool

    @property
    def is_done(self) -> bool:
        """Whether nothing runs and nothing more can start."""
        return self.is_settled and self.running == 0


@record
class Lane:
    """A lane that was paused, declared by a task or has jobs; states without jobs are left out of `counts`."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    counts: Mapping[JobState, int]

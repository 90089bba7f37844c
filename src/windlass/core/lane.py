"""Lanes as operators see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from windlass.core.job import JobState


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane that was paused, declared by a task or has jobs; states without jobs are left out of `counts`."""

    name: str
    paused_at: datetime | None
    paused_by: str | None
    counts: Mapping[JobState, int]

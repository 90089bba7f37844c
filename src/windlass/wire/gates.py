"""Lanes and tasks as the HTTP API shows them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from windlass.core.job import JobState
from windlass.wire import answer


@answer
class GateOut:
    """A lane or task as the request left it."""

    name: str
    is_paused: bool
    paused_by: str | None = None
    is_changed: bool
    """False when it was so before."""


@answer
class DrainOut:
    """A paused lane or task and what still runs in it; ask again until it is done."""

    name: str
    running: int
    is_settled: bool
    """Otherwise a claim may still be under way."""
    is_done: bool


@answer
class LaneOut:
    """A lane with its jobs by state."""

    name: str
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    counts: Mapping[JobState, int]
    """States without jobs are left out."""


@answer
class TaskOut:
    """A task that some process declared, or that was paused before any did."""

    name: str
    lane: str
    options: Mapping[str, Any]
    breaker: str | None = None
    is_declared: bool
    is_paused: bool
    paused_at: datetime | None = None
    paused_by: str | None = None
    first_seen_at: datetime
    seen_at: datetime

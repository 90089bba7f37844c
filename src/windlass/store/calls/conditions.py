"""A filter of jobs as the fragment `job_matches` takes it: lists and bulks mean the same jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from windlass.core.filter import JobFilter, StateFilter
from windlass.core.ids import job_uuid
from windlass.core.job import WAITING, WaitReason
from windlass.store import batches


def conditions(jobs: JobFilter) -> dict[str, Any]:
    """Write a filter's fields; one that asks for nothing is null."""
    own = jobs.own_job
    return {
        **{one.name: getattr(jobs, one.name) for one in fields(JobFilter)},
        "states": _state_words(jobs.state_filters),
        "tasks": _array(jobs.tasks),
        "lanes": _array(jobs.lanes),
        "correlation_id": jobs.correlation_id if own is None else str(job_uuid(own)),
        "own": own or 0,
        "search": None if jobs.search is None else pattern(jobs.search),
        "error": None if jobs.error is None else pattern(jobs.error),
    }


def _array(names: Sequence[str]) -> str | None:
    return batches.array(map(batches.quote, names)) if names else None


def _state_words(states: Sequence[StateFilter]) -> str | None:
    """Write the wanted states as one string of `state/reason` tokens, which is searched once for each row."""
    if not states:
        return None
    words = [
        f"{one.state}/{reason}"
        for one in states
        for reason in (one.reasons if one.reasons is not None else WaitReason if one.state in WAITING else [""])
    ]
    return f" {' '.join(words)} "


def pattern(text: str) -> str:
    """Write a text as a LIKE pattern that finds it anywhere, its own wildcards taken literally."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"

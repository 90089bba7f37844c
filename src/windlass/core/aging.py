"""Waiting jobs gain priority with time; a formula, so that any number of instances agree."""

from __future__ import annotations

from datetime import timedelta

PATIENCE = timedelta(hours=1)
STEP = timedelta(minutes=5)
GAIN = 10
TOP = 100


def aged(priority: int, base: int, waited: timedelta) -> int:
    """Return which priority a job has that was due `waited` ago; the statements compute the same."""
    if waited <= PATIENCE:
        return priority
    return max(priority, min(TOP, base + GAIN * (1 + (waited - PATIENCE) // STEP)))

"""What a wake-up is about."""

from __future__ import annotations

from enum import StrEnum


class Topic(StrEnum):
    """Why a sleeper may want to look at the database now."""

    WORK = "work"
    """Something may be claimable."""
    DUE = "due"
    """A job was put off, perhaps to an earlier time than the sleepers wait for."""
    CONTROL = "control"
    """A running job or a worker was changed; the next renewal or heartbeat returns it."""
    ALERTS = "alerts"
    """An alert was raised, cleared or silenced."""


EVERYTHING = frozenset(Topic)

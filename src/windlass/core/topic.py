"""What a wake-up is about."""

from __future__ import annotations

from enum import StrEnum


class Topic(StrEnum):
    """Why a sleeper may want to look at the database now."""

    WORK = "work"
    """Something may be claimable."""
    DUE = "due"
    """Something was put off, perhaps to an earlier time than sleepers know of."""
    CONTROL = "control"
    """Somebody spoke about a running job or a worker: the next renewal or heartbeat brings news."""
    ALERTS = "alerts"
    """An alert was raised, cleared or silenced."""


EVERYTHING = frozenset(Topic)

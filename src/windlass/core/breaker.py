"""Circuit breakers: when a failing service is left alone, and when it is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME

DEFAULT_THRESHOLD = 5
DEFAULT_OPEN = timedelta(seconds=60)


class BreakerState(StrEnum):
    """Whether work flows, is held back, or is being tried with one job."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerSpec:
    """A breaker as code asks for it: opens after `threshold` failures in a row, is tried again after `open_for`."""

    name: str
    threshold: int = DEFAULT_THRESHOLD
    open_for: timedelta = DEFAULT_OPEN

    def __post_init__(self) -> None:
        """Refuse what could never open or close."""
        check_text("breaker", self.name, MAX_NAME)
        check_range("threshold", self.threshold, 1, 1_000_000)
        check_wait("open_for", self.open_for, least=timedelta(milliseconds=1))

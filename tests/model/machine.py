"""The model and the stores in lock-step: whatever is asked of one is asked of all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from tests.model import wishes
from tests.model.bench import UNKNOWN, Bench, Refusal, Side, attempt, differences, run_differences
from tests.model.model import Ending, Model, Row, Told
from windlass.core.job import CLOSED, Claimed, JobState, Lease, Slices
from windlass.core.outcome import Finish, Run, decide
from windlass.store.doctor import check
from windlass.testing import FakeClock

T = TypeVar("T")
MOST_JOBS = 14
CHECKED_EVERY = 10


@dataclass
class Holding:
    """What a worker believes to hold; it is not told when it is wrong."""

    claim: Claimed
    started_at: datetime | None
    ending: Ending | None = None


class LockStep(RuleBasedStateMachine):
    """Every verb, in any order, at any time, sent once or again."""

    bench: ClassVar[Bench]

    def __init__(self) -> None:
        super().__init__()
        self.bench.reset()
        self.clock = FakeClock(wishes.START)
        self.model = Model()
        self.holdings: list[Holding] = []
        self.stale_slices: list[Slices] | None = None
        self.last_token = 0
        self.steps = 0

    # What the rules need.

    def _agree(self, ask: Callable[[Side], object], expected: Callable[[], object]) -> None:
        """Ask stores and model the same; the answers must be equal, and so must every row."""

    def _pick(self, items: Sequence[T], places: Iterable[int]) -> list[T]:
        """Take elements by place, each once."""
        chosen = {place % len(items) for place in places} if items else set()
        return [items[place] for place in sorted(chosen)]

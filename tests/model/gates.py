"""The rules of lanes and tasks that are paused and of breakers, without a database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.breaker import BreakerSpec, BreakerState
from windlass.core.gate import Gate, GateKind

SPEC = BreakerSpec("api", threshold=2, open_for=timedelta(seconds=30))
GATED = "mail"
"""The one task behind the one breaker."""


class Holder(NamedTuple):
    """Who asks or tells: a job's lease, or a number that an admission gave."""

    job: int | None = None
    token: int | None = None


@dataclass
class Switch:
    """A breaker; its fields must be equal to those of `Breaker`, but for the names of the permit."""

    state: BreakerState = BreakerState.CLOSED
    failures: int = 0
    successes: int = 0
    last_failure_at: datetime | None = None
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    half_opened_at: datetime | None = None
    is_forced: bool = False
    probe: Holder = field(default_factory=Holder)
    last_probe: int | None = None

    def open(self, now: datetime, until: datetime | None) -> None:
        self.state, self.opened_at, self.probe_at = BreakerState.OPEN, now, until
        self.half_opened_at, self.probe, self.is_forced = None, Holder(), False

    def fail(self, now: datetime, failures: int) -> None:
        self.open(now, now + SPEC.open_for)
        self.failures, self.last_failure_at = failures, now

    def close(self) -> None:
        self.state, self.failures, self.probe_at = BreakerState.CLOSED, 0, None
        self.half_opened_at, self.probe, self.is_forced = None, Holder(), False

    def try_with(self, holder: Holder, now: datetime) -> None:
        self.state, self.half_opened_at, self.probe, self.is_forced = BreakerState.HALF_OPEN, now, holder, False
        self.last_probe = holder.job or self.last_probe


class Gates:
    """Everything that may keep a job from being claimed, and the number that moves with it."""

    def __init__(self) -> None:
        self.version = 1
        self.paused: set[tuple[GateKind, str]] = set()
        self.switch: Switch | None = None
        self.failures = 0
        """In a row, while it is closed."""

    def declare(self) -> None:
        """Put the task behind its breaker."""
        self.version += 1

    def pause(self, kind: GateKind, name: str) -> Gate:
        is_changed = (kind, name) not in self.paused
        self.paused.add((kind, name))
        self.version += is_changed
        return Gate(name, is_paused=True, paused_by=None, is_changed=is_changed)

    def resume(self, kind: GateKind, name: str) -> Gate:
        is_changed = (kind, name) in self.paused
        self.paused.discard((kind, name))
        self.version += is_changed
        return Gate(name, is_paused=False, paused_by=None, is_changed=is_changed)

    def force_open(self, for_: timedelta | None, now: datetime) -> Switch:
        self.failures = 0
        self.switch = self.switch or Switch()
        self.switch.open(now, None if for_ is None else now + for_)
        self.switch.is_forced = True
        self.version += 1
        return self.switch

    def reset(self) -> Switch | None:
        self.failures = 0
        if self.switch is not None and self.switch.state is not BreakerState.CLOSED:
            self.switch.close()
            self.version += 1
        return self.switch

    def record(self, holder: Holder, now: datetime, *, succeeded: bool, failures: int, is_alive: bool) -> BreakerState:
        """Hear of the probe's result, or of a success or failures while it is closed; anything else changes nothing."""
        is_closed = self.switch is None or self.switch.state is BreakerState.CLOSED
        self.failures = 0 if succeeded else self.failures + (failures if is_closed else 0)
        if self.failures >= SPEC.threshold:
            self.switch = self.switch or Switch()
        switch = self.switch
        if switch is None:
            return BreakerState.CLOSED
        is_probe = switch.state is BreakerState.HALF_OPEN and holder.token is not None and switch.probe == holder
        if is_probe and (holder.job is None or is_alive):
            if succeeded:
                switch.close()
                switch.successes += 1
            else:
                switch.fail(now, switch.failures + 1)
            self.version += 1
        elif self.failures >= SPEC.threshold:
            switch.fail(now, self.failures)
            self.failures = 0
            self.version += 1
        return switch.state

    def is_due(self, now: datetime, *, is_alive: bool) -> bool:
        """Whether the next one to come is the probe."""
        switch = self.switch
        if switch is None or switch.state is BreakerState.CLOSED:
            return False
        if switch.state is BreakerState.HALF_OPEN:
            return not is_alive
        return switch.probe_at is not None and switch.probe_at <= now

    def lets_through(self, lane: str, task: str) -> bool:
        return not {(GateKind.LANE, lane), (GateKind.TASK, task)} & self.paused

    def is_behind_a_breaker(self, task: str) -> bool:
        return task == GATED and self.switch is not None and self.switch.state is not BreakerState.CLOSED

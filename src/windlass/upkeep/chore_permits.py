"""Which process does a chore: one of many for each interval, by compare-and-set."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.ports import Clock
from windlass.store import Store
from windlass.telemetry import LOG_EVERY_S, LogThrottle
from windlass.upkeep.duty import Duty, Round

log = logging.getLogger("windlass.upkeep")

_LOOK = timedelta(seconds=5)
"""How soon every process sees what an operator has paused or resumed."""
_SOON = timedelta(milliseconds=100)
_TOGETHER = timedelta(seconds=1)
"""Chores that are due so soon after the first are done with it: a process that wakes for each of them never rests."""
_SET_CLOCK_EVERY = timedelta(minutes=1)


class ChorePermits:
    """Does the chores that are due, one after the other, but for paused ones."""

    def __init__(self, store: Store, duties: Sequence[Duty], *, clock: Clock, name: str) -> None:
        """Do these chores; the database records `name` as the one that did them."""
        self._store = store
        self._duties = duties
        self._clock = clock
        self._name = name
        self._throttle = LogThrottle(LOG_EVERY_S, clock.monotonic)
        self._paused: frozenset[str] = frozenset()
        self._due_at: dict[str, datetime] = {}
        self._clock_set: float | None = None

    def is_paused(self, chore: str) -> bool:
        """Whether an operator has paused a chore, as of the last look; warns once a minute that it is."""
        if chore not in self._paused:
            return False
        if self._throttle.is_due(f"{chore} is paused"):
            log.warning("%s is paused by an operator; jobs wait for it until: windlass chores resume %s", chore, chore)
        return True

    async def look(self) -> None:
        """Read what is paused and when each chore is due; an outage keeps the values read before."""
        try:
            await self._set_clock()
            known = await self._store.chores.list()
        except Exception as error:  # noqa: BLE001 - upkeep goes on by itself when the database is back
            self._complain("the list of chores", error)
            return
        self._paused = frozenset(chore.name for chore in known if chore.paused_at is not None)
        self._due_at = {chore.name: chore.due_at for chore in known if chore.due_at is not None}

    async def round(self) -> timedelta:
        """Look, and do what is due; returns how long the next look can wait."""
        await self.look()
        for duty in self._duties:
            if duty.name not in self._paused and self._wait(duty) <= timedelta():
                await self._do(duty)
        waits = [_LOOK, *(self._wait(duty) for duty in self._duties if duty.name not in self._paused)]
        first = min(waits)
        return _SOON if first <= _SOON else max(wait for wait in waits if wait <= first + _TOGETHER)

    def _wait(self, duty: Duty) -> timedelta:
        due_at = self._due_at.get(duty.name)
        return timedelta() if due_at is None else due_at - self._clock.now()

    async def _do(self, duty: Duty) -> None:
        try:
            permit = await self._store.chores.due(duty.name, duty.every, self._name)
            # Without a permit another process has it, and the next look shows until when.
            self._due_at[duty.name] = self._clock.now() + (_LOOK if permit is None else duty.every)
            if permit is None:
                return
            began = self._clock.monotonic()
            done = await self._work(duty, permit.cursor)
            took = done.took or timedelta(seconds=self._clock.monotonic() - began)
            again = _SOON if done.has_more else done.rest
            if again is not None:
                self._due_at[duty.name] = self._clock.now() + again
            if again is None and done.is_uneventful and permit.is_uneventful:
                # It is recorded like that: an idle database is not written to for the time it took.
                return
            await self._store.chores.done(permit, done.rows, took, error=done.error, cursor=done.cursor, again=again)
        except Exception as error:  # noqa: BLE001 - one chore must not stop the others
            self._due_at[duty.name] = self._clock.now() + _LOOK
            self._complain(duty.name, error)

    async def _work(self, duty: Duty, cursor: str | None) -> Round:
        try:
            return await duty.work(cursor)
        except Exception as error:  # noqa: BLE001 - recorded where operators look, and the others go on
            self._complain(duty.name, error)
            return Round(0, cursor=cursor, error=f"{type(error).__name__}: {error}")

    async def _set_clock(self) -> None:
        """Ask the database for its time now and then: this machine's steady counter stands still while it sleeps."""
        now = self._clock.monotonic()
        if self._clock_set is None or now - self._clock_set >= _SET_CLOCK_EVERY.total_seconds():
            self._clock.note(await self._store.clock())
            self._clock_set = now

    def _complain(self, what: str, error: Exception) -> None:
        if self._throttle.is_due(what):
            log.warning("upkeep: %s: %s: %s", what, type(error).__name__, error)

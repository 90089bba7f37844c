"""The chores that one process of many does at a time, each in bounded pieces."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta

from windlass.core.alert_rules import RULES, AlertRule
from windlass.core.alert_signs import CHORE
from windlass.core.alerts import EVERY, Notice
from windlass.core.canary import CanaryState
from windlass.core.chore import Swept
from windlass.core.job import NewJob
from windlass.core.record import record
from windlass.core.retention import Retention
from windlass.store import Store
from windlass.upkeep.duty import Duty, Round
from windlass.upkeep.machine import this_machine

log = logging.getLogger("windlass.upkeep")

_FOLDED = 10_000
_PRUNED = 1000
_CHAINED = 500
_WITHOUT_CANARIES = timedelta(minutes=1)
"""How long the canaries' chore rests while there are none; one that is started hastens it."""


def _no_jobs(_notice: Notice) -> Sequence[NewJob]:
    return ()


@record(kw_only=True)
class AlertOptions:
    """The rules of alerts, and the notification jobs that they make."""

    rules: Mapping[str, AlertRule] = field(default_factory=lambda: RULES)
    notify: Callable[[Notice], Sequence[NewJob]] = _no_jobs
    """Makes the jobs that send an alert; they are enqueued in the transaction that raises or clears it."""


@record(kw_only=True)
class UpkeepOptions:
    """How often the chores come round."""

    lease: timedelta = timedelta(seconds=20)
    poll_interval: timedelta = timedelta(seconds=1)
    reclaim_interval: timedelta = timedelta(seconds=2)
    aging_interval: timedelta = timedelta(minutes=5)
    retention_interval: timedelta = timedelta(minutes=10)
    fold_interval: timedelta = timedelta(seconds=10)
    chain_interval: timedelta = timedelta(minutes=1)
    canary_interval: timedelta = timedelta(seconds=5)
    # Twice a minute, so that none is left out when a round comes late.
    sample_interval: timedelta = timedelta(seconds=30)
    retention: Retention = field(default_factory=Retention)
    alerts: AlertOptions = field(default_factory=AlertOptions)


def shared_duties(store: Store, options: UpkeepOptions) -> tuple[Duty, ...]:
    """List what one process does for all."""
    slow = options.retention_interval
    return (
        Duty("fold", options.fold_interval, _fold(store)),
        Duty("age", options.aging_interval, lambda cursor: _swept(store.age_some(cursor))),
        Duty("prune", slow, lambda cursor: _swept(store.retention.prune_some(options.retention, cursor))),
        Duty("prune-minutes", slow, lambda _: _pruned(store.runs.prune_minutes(limit=_PRUNED))),
        Duty("prune-logs", slow, lambda _: _pruned(store.prune_logs(limit=_PRUNED))),
        Duty("prune-workers", slow, lambda _: _pruned(store.workers.prune(limit=_PRUNED))),
        Duty("prune-breaker-events", slow, lambda _: _pruned(store.breakers.prune_events(limit=_PRUNED))),
        Duty("prune-signatures", slow, lambda _: _pruned(store.signatures.prune(limit=_PRUNED))),
        Duty("prune-refusals", slow, lambda _: _refusals(store, options.retention.keep)),
        Duty("sample", options.sample_interval, lambda _: _sample(store)),
        Duty("canaries", options.canary_interval, lambda _: _canaries(store)),
        Duty("chain-audit", options.chain_interval, _chain(store)),
        # Last: what the others have just done is not overdue.
        Duty(CHORE, EVERY, _alerts(store, options.alerts)),
    )


def _fold(store: Store) -> Callable[[str | None], Awaitable[Round]]:
    async def fold(_cursor: str | None) -> Round:
        counts, runs = await store.fold_counts(_FOLDED), await store.runs.fold(_FOLDED)
        return Round(counts + runs, has_more=max(counts, runs) >= _FOLDED)

    return fold


async def _sample(store: Store) -> Round:
    return Round(await store.samples.record(await store.samples.take()))


async def _canaries(store: Store) -> Round:
    moved, has_more, has_none = await store.canaries.advance_all()
    for canary in moved:
        if canary.state is CanaryState.STOPPED:
            log.warning("canary %d stopped after %d of its letters: %s", canary.id, canary.requeued, canary.reason)
        elif canary.state is CanaryState.DONE:
            log.info("canary %d is done: %d letters were requeued, %d refused", canary.id, canary.requeued, canary.refused)
    return Round(len(moved), has_more=has_more, rest=_WITHOUT_CANARIES if has_none else None)


def _chain(store: Store) -> Callable[[str | None], Awaitable[Round]]:
    async def chain(_cursor: str | None) -> Round:
        chained, _ = await store.audit.chain(_CHAINED)
        return Round(chained, has_more=chained == _CHAINED)

    return chain


def _alerts(store: Store, options: AlertOptions) -> Callable[[str | None], Awaitable[Round]]:
    async def evaluate(_cursor: str | None) -> Round:
        found = await store.alerts.evaluate(options.rules, this_machine(store), options.notify)
        for one in found.raised:
            log.warning("alert %s: %s; try: %s", one.alert.rule, one.alert.message, one.command)
        for one in found.cleared:
            log.info("alert %s is over: %s", one.alert.rule, one.alert.message)
        return Round(len(found.raised) + len(found.cleared))

    return evaluate


async def _swept(part: Awaitable[Swept]) -> Round:
    rows, cursor = await part
    return Round(rows, has_more=cursor is not None, cursor=cursor)


async def _refusals(store: Store, keep: timedelta) -> Round:
    rows = await store.audit.prune_refusals(keep, limit=_CHAINED)
    return Round(rows, has_more=rows >= _CHAINED)


async def _pruned(part: Awaitable[int]) -> Round:
    rows = await part
    return Round(rows, has_more=rows >= _PRUNED)

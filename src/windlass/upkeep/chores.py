"""The chores that one process of many does at a time, each in bounded pieces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from windlass.core.chore import Swept
from windlass.core.retention import Retention
from windlass.store import Store
from windlass.upkeep.duty import Duty, Round

_FOLDED = 10_000
_PRUNED = 1000
_CHAINED = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepOptions:
    """How often the chores come round."""

    lease: timedelta = timedelta(seconds=20)
    poll_interval: timedelta = timedelta(seconds=1)
    reclaim_interval: timedelta = timedelta(seconds=2)
    aging_interval: timedelta = timedelta(minutes=5)
    retention_interval: timedelta = timedelta(minutes=10)
    fold_interval: timedelta = timedelta(seconds=10)
    chain_interval: timedelta = timedelta(minutes=1)
    retention: Retention = field(default_factory=Retention)


def shared_duties(store: Store, options: UpkeepOptions) -> tuple[Duty, ...]:
    """List what one process does for all."""
    slow = options.retention_interval
    return (
        Duty("fold", options.fold_interval, _fold(store)),
        Duty("age", options.aging_interval, lambda cursor: _swept(store.age_some(cursor))),
        Duty("prune", slow, lambda cursor: _swept(store.retention.prune_some(options.retention, cursor))),
        Duty("prune-minutes", slow, lambda _: _pruned(store.runs.prune_minutes(limit=_PRUNED))),
        Duty("prune-workers", slow, lambda _: _pruned(store.workers.prune(limit=_PRUNED))),
        Duty("prune-breaker-events", slow, lambda _: _pruned(store.breakers.prune_events(limit=_PRUNED))),
        Duty("prune-signatures", slow, lambda _: _pruned(store.signatures.prune(limit=_PRUNED))),
        Duty("prune-refusals", slow, lambda _: _refusals(store, options.retention.keep)),
        Duty("chain-audit", options.chain_interval, _chain(store)),
    )


def _fold(store: Store) -> Callable[[str | None], Awaitable[Round]]:
    async def fold(_cursor: str | None) -> Round:
        counts, runs = await store.fold_counts(_FOLDED), await store.runs.fold(_FOLDED)
        return Round(counts + runs, has_more=max(counts, runs) >= _FOLDED)

    return fold


def _chain(store: Store) -> Callable[[str | None], Awaitable[Round]]:
    async def chain(_cursor: str | None) -> Round:
        chained, _ = await store.audit.chain(_CHAINED)
        return Round(chained, has_more=chained == _CHAINED)

    return chain


async def _swept(part: Awaitable[Swept]) -> Round:
    rows, cursor = await part
    return Round(rows, has_more=cursor is not None, cursor=cursor)


async def _refusals(store: Store, keep: timedelta) -> Round:
    rows = await store.audit.prune_refusals(keep, limit=_CHAINED)
    return Round(rows, has_more=rows >= _CHAINED)


async def _pruned(part: Awaitable[int]) -> Round:
    rows = await part
    return Round(rows, has_more=rows >= _PRUNED)

"""Deletes old history at once; upkeep does the same in small parts all day."""

from __future__ import annotations

from datetime import timedelta

from windlass.app import Windlass
from windlass.packs.notify.fields import LANE

TASK = "cleanup-jobs"
DAILY = "0 3 * * *"

_BATCH = 1000


def install(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=TASK, lane=LANE, cron=DAILY)
    async def cleanup_jobs() -> dict[str, int]:
        """Remove finished jobs, runs, dead letters and reminders that are older than the settings keep."""
        store = await app.store()
        pruned = await store.retention.prune(app.settings.retention)
        return {**pruned._asdict(), "reminders": await _prune_reminders(app, app.settings.retention.keep)}


async def _prune_reminders(app: Windlass, keep: timedelta) -> int:
    store = await app.store()
    gone = 0
    while part := await store.reminders.prune(keep, limit=_BATCH):
        gone += part
    return gone

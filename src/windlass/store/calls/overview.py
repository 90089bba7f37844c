"""What the first page shows, from one look: all its numbers are of the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.alerts import AlertBoard
from windlass.core.audit import AuditEntry
from windlass.core.gate import Lane
from windlass.core.insights import NextFire, Summary, summarize
from windlass.core.job import Count
from windlass.core.letter_page import LetterCounts, LetterGroups
from windlass.core.page import JobQuery, Page, Sort
from windlass.core.runs import Minute
from windlass.core.sample import KEPT, Sample
from windlass.core.worker import WorkerRecord
from windlass.store.calls import alerts, audit, gates, insights, letter_pages, lists, runs, samples, workers
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.rows import SHAPES, Shape

_MOST_RECURRING = 1_000
MOST_WORKERS = 200
_SHOWN_GROUPS = 6
_MOST_GROUPED = 500
_SHOWN_FIRES = 40
_SHOWN_DEEDS = 30
_MINUTE = timedelta(minutes=1)
SHAPES |= {"next_fires": Shape((3,))}


class Overview(NamedTuple):
    """What the first page shows."""

    summary: Summary
    """Without tasks, payload sizes, priorities and the success of retries; of what may be wrong only breakers."""
    page: Page
    lanes: Sequence[Lane]
    workers: Sequence[WorkerRecord]
    minutes: Sequence[Minute]
    samples: Sequence[Sample]
    """How deep the queue was in the last hour, as far as upkeep looked."""
    alerts: AlertBoard
    groups: LetterGroups
    deaths: LetterCounts
    fires: Sequence[NextFire]
    deeds: Sequence[AuditEntry]
    """The newest lines of the audit log."""

    @property
    def at(self) -> datetime:
        """The moment of the look."""
        return self.summary.present.at

    @property
    def counts(self) -> Sequence[Count]:
        """The jobs by task, lane and state."""
        return self.summary.present.counts


def overview(*, minutes: int = 60, jobs: int = 20, most_sorted: int = 1_000) -> Call[Overview]:
    """Read what the first page shows: also the jobs that moved last, or the newest where there are too many to sort."""

    def steps(means: Means) -> Steps[Overview]:
        looked = yield from insights.read_flow()
        present = replace(looked.present, breakers=(yield from insights.read_breakers(means)))
        is_small = sum(one.jobs for one in looked.present.counts) <= most_sorted
        wanted = JobQuery(sort=Sort.UPDATED_AT if is_small else Sort.CREATED_AT, limit=jobs)
        until = insights.whole_minute(looked.present.at) + _MINUTE
        return Overview(
            summary=summarize(present, looked.recent, has_tasks=False),
            page=(yield from lists.read_page(wanted, looked.present.counts)),
            lanes=(yield from gates.list_lanes().steps(means)),
            workers=(yield from workers.read_started(looked.registered[:MOST_WORKERS])),
            minutes=(yield from runs.read_minutes(until - minutes * _MINUTE, until).steps(means)),
            samples=(yield from samples.read_since(until - KEPT)),
            alerts=(yield from alerts.read_board().steps(means)),
            groups=(yield from letter_pages.group_open_letters(limit=_SHOWN_GROUPS, depth=_MOST_GROUPED).steps(means)),
            deaths=(yield from letter_pages.count_letters().steps(means)),
            fires=[NextFire(*row) for row in (yield Step("next_fires", {"most": _MOST_RECURRING, "limit": _SHOWN_FIRES}))],
            deeds=(yield from audit.list_entries(limit=_SHOWN_DEEDS).steps(means)),
        )

    return Call(steps, is_read=True, is_snapshot=True)

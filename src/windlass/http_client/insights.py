"""Queue statistics over HTTP: the verbs, and the records of their answers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from windlass.core.durations import Duration
from windlass.core.record import record
from windlass.core.scale import LaneScale
from windlass.http_client.ask import API, Ask, as_one, get, seconds, word
from windlass.wire.insights import (
    PointOut,
    SummaryOut,
)


@record(kw_only=True)
class RemoteSeries:
    """Runs over time; every step is there."""

    task: str | None = None
    lane: str | None = None
    from_at: Annotated[datetime, Field(validation_alias="from")]
    to: datetime
    step_seconds: float
    points: tuple[PointOut, ...]


def summary() -> Ask[SummaryOut]:
    """Read the statistics of every task and lane: depth now, rates and percentiles of the last minutes."""
    return get(f"{API}/metrics/summary", as_one(SummaryOut))


def series(
    *,
    task: str | None = None,
    lane: str | None = None,
    from_at: datetime | None = None,
    to_at: datetime | None = None,
    step: Duration = "1m",
) -> Ask[RemoteSeries]:
    """Read the runs that ended over time; left out, the last hour."""
    query = {"task": task, "lane": lane, "from": from_at, "to": to_at, "step": f"{seconds(step, 'step'):g}s"}
    return get(f"{API}/metrics", as_one(RemoteSeries), query)


def scale(lane: str, *, slots: int | None = None, within: Duration = "1m") -> Ask[LaneScale]:
    """Read how many workers a lane wants; `*` is every lane but `pull`."""
    return get(f"{API}/scale/{word(lane)}", as_one(LaneScale), {"slots": slots, "within": f"{seconds(within, 'within'):g}s"})

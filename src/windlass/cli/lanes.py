"""`windlass lanes`."""

from __future__ import annotations

import click

from windlass.cli import options
from windlass.cli.gates import add_gates
from windlass.cli.noun import NounGroup
from windlass.cli.output import plain, say_json, say_table
from windlass.cli.session import operating
from windlass.core.job import JobState

_STATES = (JobState.PENDING, JobState.SCHEDULED, JobState.RUNNING, JobState.PAUSED, JobState.FAILED)


@click.group(cls=NounGroup)
def lanes() -> None:
    """List, pause, resume and drain lanes; a lane's jobs are claimed only while it is not paused."""


@lanes.command(name="list")
@options.listing
@options.database
def list_(*, as_json: bool, database: str | None) -> None:
    """List the lanes that were paused, declared or have jobs."""
    with operating(database) as operator:
        found = operator.lanes.list_sync()
    if as_json:
        say_json({"lanes": [plain(one) | {"is_paused": one.paused_at is not None} for one in found], "total": len(found)})
        return
    rows = (
        {"name": one.name, "paused_at": one.paused_at, "paused_by": one.paused_by}
        | {state.value: one.counts.get(state, 0) for state in _STATES}
        for one in found
    )
    say_table(rows, ("name", *_STATES, "paused_at", "paused_by"))


add_gates(lanes, "lanes", "lane")

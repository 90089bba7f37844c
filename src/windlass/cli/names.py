"""Names of tasks and lanes as typed in filters: one that is not known is pointed out when its filter matches nothing."""

from __future__ import annotations

from collections.abc import Iterable

from windlass.cli.output import complain
from windlass.client.operations import Operator
from windlass.errors import GateNotFound


def refuse_unknown(operator: Operator, tasks: Iterable[str] = (), lanes: Iterable[str] = ()) -> None:
    """Raise GateNotFound for a name that was never declared or paused and has no jobs."""
    for task in tasks:
        operator.known_tasks.ensure_known_sync(task, may_force=False)
    for lane in lanes:
        operator.lanes.ensure_known_sync(lane, may_force=False)


def hint_at_unknown(operator: Operator, tasks: Iterable[str] = (), lanes: Iterable[str] = ()) -> None:
    """Print the nearest names of one that is not known; an empty list stays a good answer."""
    try:
        refuse_unknown(operator, tasks, lanes)
    except GateNotFound as error:
        complain(error)

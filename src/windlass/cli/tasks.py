"""`windlass tasks`."""

from __future__ import annotations

from typing import Any

import click

from windlass.cli.gates import add_gates
from windlass.cli.noun import NounGroup, add_list
from windlass.cli.output import plain
from windlass.core.known_task import KnownTask

_COLUMNS = ("name", "lane", "breaker", "is_declared", "paused_at", "paused_by", "seen_at")


@click.group(cls=NounGroup)
def tasks() -> None:
    """List, pause, resume and drain the tasks that processes declared."""


def _fields(task: KnownTask) -> dict[str, Any]:
    return {**plain(task), "is_paused": task.paused_at is not None}


add_list(tasks, "known_tasks", _COLUMNS, fields=_fields)
add_gates(tasks, "known_tasks", "task")

"""Declared options of tasks, for processes without their code: read from the database and kept for seconds."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from windlass.client.unique import key_by_rule
from windlass.core.known_task import DeclaredOptions
from windlass.core.payload import decode, encode_object
from windlass.core.payload_schema import check_payload, defaults

if TYPE_CHECKING:
    from windlass.store import Store

log = logging.getLogger("windlass.client")

_MOST = 1000


class _Answer(NamedTuple):
    options: DeclaredOptions | None
    asked_at: float


class DeclaredTasks:
    """The options of tasks that other processes declared."""

    def __init__(self) -> None:
        """Start empty."""
        self.kept_s = 2.0
        """How long an answer is used before the database is asked again: a worker may start with other options meanwhile."""
        self._answers: dict[str, _Answer] = {}
        self._warned: set[str] = set()

    async def find(self, store: Store, task: str, *, may_be_absent: bool) -> DeclaredOptions | None:
        """Find a task's options; None when no process has declared it.

        Where an absent task is refused, an absence is not remembered: the task may be declared at any moment.
        """
        now = time.monotonic()
        known = self._answers.get(task)
        if known is not None and now - known.asked_at < self.kept_s and (known.options is not None or may_be_absent):
            return known.options
        found = await store.tasks.get(task)
        options = found.declared() if found is not None and found.is_declared else None
        if len(self._answers) >= _MOST:
            # Jobs of lane `pull` may have any task name.
            self._answers.clear()
        self._answers[task] = _Answer(options, now)
        return options

    def fields(self, task: str, payload: Mapping[str, Any], options: DeclaredOptions) -> dict[str, Any]:
        """Fill in the fields of a job as the task's code would; raises InvalidPayload naming the field that is wrong."""
        text = encode_object(dict(payload))
        values = decode(text)
        schema = options.schema or {}
        check_payload(schema, values)
        if options.unique == "code" and task not in self._warned:
            self._warned.add(task)
            log.warning(
                "task %s computes its unique key in code that this process does not have: its jobs have only the unique_key "
                "that is sent with them",
                task,
            )
        return {
            **options.fields,
            "payload": text,
            "unique_key": key_by_rule(options.unique, {**defaults(schema), **values}),
        }

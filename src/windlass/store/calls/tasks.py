"""The registry of tasks; its entries outlive their workers."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.checks import check_characters, check_range
from windlass.core.gate import GateKind
from windlass.core.known_task import DeclaredTask, KnownTask
from windlass.core.page import CappedCount
from windlass.store import batches
from windlass.store.calls.call import Call, Means, Step, Steps, known, single
from windlass.store.calls.reads import count_capped
from windlass.store.rows import SHAPES, Shape

MAX_LIST = 500

SHAPES |= {"stale_tasks": Shape((), (1,)), "list_tasks": Shape.of(KnownTask)}


def declare(tasks: Sequence[DeclaredTask]) -> Call[list[str]]:
    """Enter tasks; writes only those that are new, changed or not seen for a minute, and returns them."""
    if not tasks:
        return known([])
    entries = {task.name: _document(task) for task in tasks}

    def steps(_: Means) -> Steps[list[str]]:
        found = yield Step("stale_tasks", {"tasks": batches.array(entries.values())})
        stale = [name for name, _ in found]
        if stale:
            yield Step("declare_tasks", {"tasks": batches.array(entries[name] for name in stale)})
        if any(has_other_breaker for _, has_other_breaker in found):
            # The task stands behind another gate now, which may be closed.
            yield Step("move_gates", {})
        return stale

    return Call(steps)


def _document(task: DeclaredTask) -> str:
    quote = batches.quote
    breaker = "" if task.breaker is None else f',"breaker":{quote(task.breaker)}'
    return f'{{"name":{quote(task.name)},"lane":{quote(task.lane)},"options":{quote(task.options)}{breaker}}}'


def list_tasks(*, after: str = "", limit: int = MAX_LIST) -> Call[list[KnownTask]]:
    """Read tasks by name, page by page."""
    check_characters("after", after)
    check_range("limit", limit, 1, MAX_LIST)
    params = {"after_name": after, "limit": limit}
    return single("list_tasks", params, lambda found: [KnownTask(*row) for row in found], is_read=True)


def get(name: str) -> Call[KnownTask | None]:
    """Read one task; nothing when it was never declared or paused."""
    GateKind.TASK.check(name)
    return single("get_known_task", {"name": name}, lambda found: KnownTask(*found[0]) if found else None, is_read=True)


def knows(task: str) -> Call[bool]:
    """Whether any process ever declared the task."""
    return single("knows_task", {"task": task}, lambda found: bool(found[0][0]), is_read=True)


def count() -> Call[CappedCount]:
    """Count them, up to a bound."""
    return count_capped("count_tasks")

"""Moves over whatever a filter matches, batch by batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from windlass.core.audit import Deed
from windlass.core.filter import JobFilter
from windlass.core.job_verbs import JOB_VERBS, Bulk
from windlass.core.payload import encode_object
from windlass.core.topic import Topic
from windlass.errors import InvalidInput
from windlass.store import batches, rows
from windlass.store.calls import clone, control, endings, override
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.calls.conditions import conditions
from windlass.store.calls.letters import Settling
from windlass.store.calls.move import Move, possible

_MODULES = (control, endings, override, clone)
_NAMES = (*(verb.in_store or name for name, verb in JOB_VERBS.items()), "override_status")
VERBS: Mapping[str, Callable[..., Move]] = {
    name: next(getattr(module, name) for module in _MODULES if hasattr(module, name)) for name in _NAMES
}
# So many rows are looked at in one statement, however few of them match.
WINDOW = 20_000
# A clone reads and writes whole payloads, which may have a megabyte each.
MOST_AT_ONCE = {"clone": 100}
_MOST_IDS = 100


class MatchingIds(NamedTuple):
    """The jobs that matched among the next ones, and where the look ended."""

    ids: list[int]
    end: int | None


class BatchDone(NamedTuple):
    """What one transaction of a bulk did."""

    bulk: Bulk
    deed: Deed | None
    changed: tuple[int, ...]


def maker(verb: str, options: Mapping[str, Any]) -> Callable[[Sequence[int]], Move]:
    """Find a verb and give it its options."""
    if verb not in VERBS:
        raise InvalidInput("verb", verb, f"must be one of {', '.join(VERBS)}")
    make = VERBS[verb]
    signature = inspect.signature(make)
    try:
        signature.bind([], **options)
    except TypeError as error:
        raise InvalidInput("options", sorted(options), f"do not fit {verb}: {error}") from None
    # Bad values are refused before the first batch, and by a dry run too.
    make([], **options)
    return lambda ids: make(ids, **options)


def highest() -> Call[int]:
    """Find where a bulk ends: jobs that come later are not meant."""
    return single("highest_job", {}, lambda found: found[0][0], is_read=True)


def page_ids(wanted: JobFilter, after: int, until: int, window: int = WINDOW) -> Call[MatchingIds]:
    """Read the numbers of the jobs that match among the next `window` ones, in order and without a lock."""

    def steps(_: Means) -> Steps[MatchingIds]:
        [[end]] = yield Step("window_end", {"after": after, "until": until, "window": window})
        if end is None:
            return MatchingIds([], None)
        return MatchingIds(rows.ids((yield Step("page_ids", {"after": after, "until": end, **conditions(wanted)}))), end)

    return Call(steps, is_read=True)


def matching(wanted: JobFilter, ids: Sequence[int]) -> Call[list[int]]:
    """Read which of some jobs match."""
    return single("matching_ids", {"ids": batches.numbers(possible(ids)), **conditions(wanted)}, rows.ids)


def batch(make: Callable[[Sequence[int]], Move], wanted: JobFilter, ids: Sequence[int]) -> Call[BatchDone]:
    """Move those of some jobs that still match, in one transaction."""

    def steps(means: Means) -> Steps[BatchDone]:
        listed = {"ids": batches.numbers(ids)}
        chosen = rows.ids((yield Step("matching_ids", listed | conditions(wanted))))
        move = make(chosen)
        changed = (yield from move.changes(means)) if chosen else set()
        return _counted(move.name, "jobs", chosen, changed)

    return Call(steps, wakes=_by_bulk, deed=attrgetter("deed"))


def letter_batch(settling: Settling, ids: Sequence[int]) -> Call[BatchDone]:
    """Settle some letters in one transaction."""

    def steps(means: Means) -> Steps[BatchDone]:
        return _counted(settling.name, "letters", ids, (yield from settling.changes(means)))

    return Call(steps, wakes=_by_bulk, deed=attrgetter("deed"))


def _by_bulk(answer: BatchDone) -> Collection[Topic]:
    # The rows themselves are not read, so all sleepers are woken once for each batch.
    return tuple(Topic) if answer.changed else ()


def _counted(move: str, target: str, ids: Sequence[int], changed: set[int]) -> BatchDone:
    bulk = Bulk(len(ids), len(changed), len(ids) - len(changed))
    if not ids:
        return BatchDone(bulk, None, ())
    details = encode_object({"ids": list(ids[:_MOST_IDS]), **bulk._asdict()})
    return BatchDone(bulk, Deed(move, target, "done" if changed else "refused", details), tuple(sorted(changed)))

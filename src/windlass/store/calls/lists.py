"""Lists of jobs: which index serves a question, and what is left of the answer when it has to stop early."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from windlass.core.cadence import EPOCH
from windlass.core.filter import JobFilter, StateFilter
from windlass.core.job import CLOSED, Count, Job, JobState
from windlass.core.page import MOST_COUNTED, MOST_SORTED, Cursor, JobQuery, Keys, Page, Sort
from windlass.store import batches, rows
from windlass.store.calls.call import MAX_ARMS, Call, Means, Step, Steps
from windlass.store.calls.conditions import conditions
from windlass.store.calls.work import padded
from windlass.store.rows import SHAPES, Row

# How far from the order of their times numbers may be given out: as long as one bulk takes, or a clock is set back.
_SLACK = timedelta(minutes=1)
_FIRST = -(2**63)
_LAST = 2**63 - 1
_KEY_WIDTH = 7
MOST_GATHERED = 20_000
# The slices' shares bound what is gathered; leases come on top of it.
_LEAST_DEPTH = 100_000
_SOURCES = ("all", "gathered", "slices", "subject", "correlation", "own", "parent", "recurring", "closed", "due", "waiting")
_PAGE = rows.Shape.of(Job, after=_KEY_WIDTH)
SHAPES |= {f"list_{one}_{end}": _PAGE for one in _SOURCES for end in ("newest", "oldest")}


class _Slice(NamedTuple):
    task: str
    lane: str
    state: str


_NO_SLICE = _Slice("", "", "")


class _Plan(NamedTuple):
    """Where candidates come from; a lazy plan looks at no more than it must for what it shows."""

    source: str
    slices: tuple[_Slice, ...] = ()
    is_lazy: bool = False
    share: int | None = None
    """How many of each slice are looked at."""
    is_cut: bool = False
    """Whether a slice has more than its share."""


def list_jobs(query: JobQuery | None = None) -> Call[Page]:
    """Read a page of jobs with one index, whatever is asked for; without a query, the newest."""
    wanted = query or JobQuery()

    def steps(_: Means) -> Steps[Page]:
        counts = rows.counts((yield Step("count_jobs", {}))) if _needs_counts(wanted.filter) else []
        return (yield from read_page(wanted, counts))

    return Call(steps, is_read=True)


def read_page(query: JobQuery, counts: Sequence[Count]) -> Steps[Page]:
    """Read a page where the counts of this moment are known; part of a call that shows more than the page."""
    plan = _plan(query, counts)
    above = 0
    if query.filter.since is not None:
        [[floor]] = yield Step("id_floor", {"since": query.filter.since - _SLACK})
        above = floor - 1
    arms = padded(len(plan.slices)) if plan.source in _MERGED else 0
    found = yield Step(_query_name(query, plan), _params(query, plan, above, arms), arms)
    return _page(query, plan, counts, found)


_MERGED = frozenset({"slices", "closed"})


def _needs_counts(jobs: JobFilter) -> bool:
    return jobs.is_counted or _narrow_source(jobs) is None


def _narrow_source(jobs: JobFilter) -> str | None:
    """Find an index of its own for one thing that is asked for."""
    if jobs.parent_id is not None:
        return "parent"
    if jobs.correlation_id is not None:
        return "correlation" if jobs.own_job is None else "own"
    if jobs.subject is not None:
        return "subject"
    return "recurring" if jobs.is_recurring or jobs.is_template else None


def _plan(query: JobQuery, counts: Sequence[Count]) -> _Plan:
    jobs = query.filter
    if (narrow := _narrow_source(jobs)) is not None:
        return _Plan(narrow)
    if jobs.worker is not None:
        # Without slices, what is gathered are the leases alone.
        return _Plan("gathered", share=1)
    if (ordered := _ordered_plan(query, counts)) is not None:
        return ordered
    is_lazy = jobs.is_counted and query.sort is Sort.CREATED_AT
    if not (jobs.state_filters or jobs.tasks or jobs.lanes):
        return _Plan("all", is_lazy=is_lazy)
    return _sliced_plan(query, counts, is_lazy=is_lazy and _all_match(jobs, counts))


def _sliced_plan(query: JobQuery, counts: Sequence[Count], *, is_lazy: bool) -> _Plan:
    """Take the first of each slice, or merge them where that would be too many."""
    slices = _slices(query.filter, counts)
    held = sum(one.jobs for one in counts if (one.task, one.lane, one.state) in set(slices))
    depth = query.offset + query.limit + 1
    if is_lazy and len(slices) * depth <= MOST_GATHERED:
        return _Plan("gathered", slices, is_lazy=True, share=depth)
    if held <= MOST_COUNTED:
        return _Plan("gathered", slices, share=MOST_COUNTED + 1)
    if query.sort is not Sort.CREATED_AT:
        return _Plan("gathered", slices, share=max(1, MOST_SORTED // len(slices)), is_cut=True)
    return _Plan("slices", slices, is_lazy=is_lazy) if len(slices) <= MAX_ARMS else _Plan("all")


def _ordered_plan(query: JobQuery, counts: Sequence[Count]) -> _Plan | None:
    """Find an index that already has the order asked for."""
    jobs = query.filter
    states = {one.state for one in jobs.state_filters}
    if not states or not jobs.is_counted or any(one.reasons is not None for one in jobs.state_filters):
        return None
    is_sliced = bool(jobs.tasks or jobs.lanes)
    if query.sort is Sort.COMPLETED_AT and states <= CLOSED and not is_sliced:
        return _Plan("closed", tuple(_Slice("", "", state) for state in sorted(states)), is_lazy=True)
    if query.sort is Sort.RUN_AT and states == {JobState.SCHEDULED} and not is_sliced:
        return _Plan("due", is_lazy=True)
    if query.sort is Sort.PRIORITY and states == {JobState.PENDING}:
        slices, depth = _slices(jobs, counts), query.offset + query.limit + 1
        if len(slices) * depth <= MOST_GATHERED:
            return _Plan("waiting", slices, is_lazy=True, share=depth)
    return None


def _slices(jobs: JobFilter, counts: Sequence[Count]) -> tuple[_Slice, ...]:
    """List the slices that have jobs; running ones are found by their lease."""
    found = {_Slice(one.task, one.lane, one.state) for one in counts if one.jobs > 0 and _is_meant(jobs, one)}
    return tuple(sorted(one for one in found if one.state != JobState.RUNNING))


def _all_match(jobs: JobFilter, counts: Sequence[Count]) -> bool:
    """Whether no slice holds jobs that wait for a reason that was not asked for."""
    wanted = set(_slices(jobs, counts))
    inside = [one for one in counts if (one.task, one.lane, one.state) in wanted]
    return all(_is_meant(jobs, one) for one in inside)


def _is_meant(jobs: JobFilter, count: Count) -> bool:
    return (
        (not jobs.tasks or count.task in jobs.tasks)
        and (not jobs.lanes or count.lane in jobs.lanes)
        and (not jobs.state_filters or any(_has_state(one, count) for one in jobs.state_filters))
    )


def _has_state(wanted: StateFilter, count: Count) -> bool:
    return count.state is wanted.state and (wanted.reasons is None or count.wait_reason in wanted.reasons)


def _query_name(query: JobQuery, plan: _Plan) -> str:
    # The newest are looked at first, unless the list itself begins with the oldest.
    is_oldest = not query.is_descending and (query.sort is Sort.CREATED_AT or plan.source in _KEYED)
    return f"list_{plan.source}_{'oldest' if is_oldest else 'newest'}"


_KEYED = frozenset({"closed", "due", "waiting"})


def _params(query: JobQuery, plan: _Plan, above: int, arms: int) -> dict[str, Any]:
    keys = _after(query)
    params: dict[str, Any] = {
        **conditions(query.filter),
        "sort": query.sort.value,
        "sign": -1 if query.is_descending else 1,
        "first_key": keys.first,
        "second_key": keys.second,
        "third_key": keys.third,
        "depth": _depth(query, plan),
        # One more than is shown shows whether there is a next page.
        "limit": query.limit + 1,
        "offset": query.offset,
    }
    params |= _edge(query, plan) if plan.source in _KEYED else _ids(query, above)
    if plan.share is not None:
        params["share"] = plan.share
        params["slices"] = batches.array(_slice_document(one) for one in plan.slices)
    for place, part in enumerate([*plan.slices, *[_NO_SLICE] * (arms - len(plan.slices))][:arms]):
        params |= {f"task_{place}": part.task, f"lane_{place}": part.lane, f"state_{place}": part.state}
    return params


def _depth(query: JobQuery, plan: _Plan) -> int:
    """Return how many candidates to look at: one more than the bound shows that there were more."""
    if plan.share is not None:
        return _LEAST_DEPTH
    if plan.is_lazy:
        return query.offset + query.limit + 1
    jobs = query.filter
    is_short = any(one is not None for one in (jobs.search, jobs.error, jobs.priority)) or jobs.is_counted
    return (MOST_SORTED if is_short else MOST_COUNTED) + 1


def _after(query: JobQuery) -> Keys:
    position = query.position()
    return Keys(_FIRST, _FIRST, _FIRST) if position is None else position.after


def _ids(query: JobQuery, above: int) -> dict[str, int]:
    """Return between which numbers candidates are: a list in their order goes on where its cursor stands."""
    bounds = {"above": above, "below": _LAST}
    position = query.position()
    if position is not None and query.sort is Sort.CREATED_AT:
        if query.is_descending:
            bounds["below"] = min(max(-position.after.first, 0), _LAST)
        else:
            bounds["above"] = max(above, position.after.first)
    return bounds


def _edge(query: JobQuery, plan: _Plan) -> dict[str, Any]:
    """Return where candidates begin in an index that has the order of the list."""
    position = query.position()
    sign = -1 if query.is_descending else 1
    if position is None:
        return _no_edge(query, plan)
    first, second, third = position.after
    if plan.source == "waiting":
        return {"edge_priority": sign * first, "edge_at": batches.kept_instant(-sign * second), "edge_id": -sign * third}
    return {"edge_at": batches.kept_instant(sign * first), "edge_id": sign * second}


def _no_edge(query: JobQuery, plan: _Plan) -> dict[str, Any]:
    if plan.source == "waiting":
        at = EPOCH if query.is_descending else batches.END_OF_TIME
        return {"edge_priority": 2**31 if query.is_descending else -(2**31) - 1, "edge_at": at, "edge_id": 0}
    return {"edge_at": batches.END_OF_TIME if query.is_descending else EPOCH, "edge_id": 0}


def _slice_document(part: _Slice) -> str:
    return f'{{"task":{batches.quote(part.task)},"lane":{batches.quote(part.lane)},"state":"{part.state}"}}'


def _page(query: JobQuery, plan: _Plan, counts: Sequence[Count], found: Sequence[Row]) -> Page:
    looked, matched = found[0][:2]
    shown = [row for row in found if row[_KEY_WIDTH] is not None]
    is_complete = not plan.is_cut and (plan.is_lazy or looked < _depth(query, plan))
    position = query.position()
    if query.filter.is_counted:
        total, is_exact = sum(one.jobs for one in counts if _is_meant(query.filter, one)), True
    elif position is not None:
        total, is_exact = position.total, position.is_total_exact
    else:
        total, is_exact = min(matched, MOST_COUNTED), is_complete
    after = _next(query, shown, found[0], is_complete=is_complete)
    return Page(
        tuple(rows.jobs([row[_KEY_WIDTH:] for row in shown[: query.limit]])),
        total,
        is_exact,
        is_complete,
        None if after is None else query.cursor_at(Cursor(after, total, is_exact)),
    )


def _next(query: JobQuery, shown: Sequence[Row], head: Row, *, is_complete: bool) -> Keys | None:
    """Return where the next page begins: after the last row shown, or after the last that was looked at."""
    if len(shown) > query.limit:
        return Keys._make(shown[query.limit - 1][4:_KEY_WIDTH])
    if is_complete or query.sort is not Sort.CREATED_AT:
        return None
    return Keys(-head[2] if query.is_descending else head[3], 0, 0)

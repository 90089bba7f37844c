"""Pull workers take jobs: several in one transaction, each exactly one, in the order they asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windlass.core.checks import check_range
from windlass.core.job import Claimed, Slice, Slices
from windlass.core.pool import PULL_LANE
from windlass.core.pull import MAX_PULLS, Candidate, PickOrder, Pull, pick
from windlass.store import batches, rows
from windlass.store.calls import breakers, report, work
from windlass.store.calls.call import Call, Means, Step, Steps
from windlass.store.rows import CLAIMED, SHAPES, Shape

SHAPES |= {
    "pick_oldest": Shape((1,)),
    "pick_newest": Shape((1,)),
    "last_turns": Shape((1,)),
    "claim_picked": CLAIMED,
}
# A gate that moved between look and claim makes the claim come back empty: one more look shows why.
_LOOKS = 2


def pull_each(
    pulls: Sequence[Pull], order: PickOrder = PickOrder.FIFO, *, found: Slices | None = None
) -> Call[list[Claimed | None]]:
    """Hand each worker one job, or none; the answers are in the order of the pulls, and so are the jobs.

    There may be fewer answers than pulls: a job that tries a breaker is the last, since a call that has moved the gates must wait
    for nothing. `found` is what the caller saw of the queue a moment ago.
    """
    check_range("pulls", len(pulls), 1, MAX_PULLS)
    for one in pulls:
        one.check()

    def steps(means: Means) -> Steps[list[Claimed | None]]:
        queue = _Queue(found, order, means)
        taken: list[Claimed | None] = []
        for one in pulls:
            earlier = report.Earlier()
            if one.pull_id is not None:
                earlier = yield from report.pull_again(one.lease, one.pull_id, one.lanes)
            mine, has_moved_gates = earlier.job, False
            if mine is None and earlier.is_name_free:
                mine, has_moved_gates = yield from queue.take(one)
            taken.append(mine)
            if has_moved_gates:
                break
        return taken

    return Call(steps, is_engine=True)


class _Queue:
    """What one call knows of the queue, and where it has found nothing."""

    def __init__(self, found: Slices | None, order: PickOrder, means: Means) -> None:
        self._found = found
        self._order = order
        self._means = means
        self._dry: set[tuple[object, ...]] = set()

    def take(self, one: Pull) -> Steps[tuple[Claimed | None, bool]]:
        """Take a job; returns also whether it is a probe, which has moved the gates."""
        for _ in range(_LOOKS):
            if one.wanted in self._dry:
                break
            is_fresh = self._found is None
            if self._found is None:
                self._found = rows.slices((yield Step("slices", {})))
            job, is_probe = yield from self._take(one, one.select(self._found))
            if job is not None:
                return job, is_probe
            self._found = None
            if is_fresh:
                self._dry.add(one.wanted)
        return None, False

    def _take(self, one: Pull, found: Slices) -> Steps[tuple[Claimed | None, bool]]:
        """Take a job; a breaker that is due comes first, since a backlog of other tasks would put its probe off for ever."""
        for breaker in found.breakers:
            probe = yield from breakers.claim_probe(found, breaker, one.lease).steps(self._means)
            if probe is not None:
                return (yield from _marked(one, probe)), True
        if not found.claimable:
            return None, False
        if self._order is PickOrder.FIFO or one.lanes != (PULL_LANE,):
            taken = yield from work.claim_any(found, one.lease).steps(self._means)
        else:
            taken = yield from self._pick(one, found)
        return (None if taken is None else (yield from _marked(one, taken))), False

    def _pick(self, one: Pull, found: Slices) -> Steps[Claimed | None]:
        """Choose among the jobs of the highest priority."""
        highest = max(part.priority for part in found.claimable)
        parts = [part for part in found.claimable if part.priority == highest][: self._means.most_arms]
        query = "pick_newest" if self._order is PickOrder.NEWEST else "pick_oldest"
        params, arms = _arms(parts)
        candidates = [Candidate._make(row) for row in (yield Step(query, params | {"priority": highest}, arms))]
        turns: dict[str, datetime] = {}
        if self._order is PickOrder.FAIR:
            groups = batches.array(map(batches.quote, dict.fromkeys(candidate.group for candidate in candidates)))
            turns = dict((yield Step("last_turns", {"groups": groups})))
        ids = pick(self._order, candidates, turns, self._means.rng)
        lease = {"token": one.lease.token, "worker": one.lease.worker, "lease": one.lease.length, "started": True}
        picked = {"ids": batches.numbers(ids), "version": found.version}
        taken = rows.claimed((yield Step("claim_picked", lease | picked)))
        return taken[0] if taken else None


def _marked(one: Pull, job: Claimed) -> Steps[Claimed]:
    if one.pull_id is not None:
        # Another request with the same pull_id has got one meanwhile: the unique index refuses, and the whole call begins anew.
        yield Step("mark_pull", {"id": job.id, "token": job.token, "pull_id": one.pull_id})
    return job


def _arms(parts: Sequence[Slice]) -> tuple[dict[str, Any], int]:
    arms = work.padded(len(parts))
    params: dict[str, Any] = {}
    for place in range(arms):
        # Padding with a slice that cannot exist keeps the number of different texts small, so that they stay prepared.
        params[f"lane_{place}"], params[f"task_{place}"] = parts[place][:2] if place < len(parts) else ("", "")
    return params, arms

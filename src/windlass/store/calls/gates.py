"""Lanes and tasks are paused, resumed and drained."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.audit import Deed
from windlass.core.gate import ALL_LANES, Gate, GateKind, Lane
from windlass.core.job import JobState
from windlass.store import batches
from windlass.store.calls import wakes
from windlass.store.calls.call import Call, Means, Step, Steps, single
from windlass.store.rows import SHAPES, Row, Shape

SHAPES |= {"get_task": Shape((1,)), "list_lanes": Shape((1,))}


def pause(kind: GateKind, name: str) -> Call[Gate]:
    """Let no job be claimed from now on; a claim made from an older view takes nothing."""
    return _move(kind, name, "pause")


def resume(kind: GateKind, name: str) -> Call[Gate]:
    """Let jobs be claimed again."""
    return _move(kind, name, "resume")


def _move(kind: GateKind, name: str, action: str) -> Call[Gate]:
    kind.check(name)

    def steps(means: Means) -> Steps[Gate]:
        is_changed = bool((yield Step(f"{action}_{kind}", {kind.value: name, "principal": means.principal})))
        if is_changed:
            # Last, and for every gate alike: the holder of the version waits for no other.
            yield Step("move_gates", {})
        found = yield Step(f"get_{kind}", {kind.value: name})
        return _gate(name, found, is_changed=is_changed)

    deed = Deed(f"{action} {kind}", f"{kind}:{name}")
    return Call(steps, wakes=lambda gate: wakes.work(gate.is_changed and not gate.is_paused), deed=lambda _: deed)


def get(kind: GateKind, name: str) -> Call[Gate]:
    """Read whether a lane or task is paused; one that was never named is not."""
    kind.check(name)
    return single(f"get_{kind}", {kind.value: name}, lambda found: _gate(name, found, is_changed=False), is_read=True)


def _gate(name: str, found: Sequence[Row], *, is_changed: bool) -> Gate:
    if not found:
        return Gate(name, is_paused=False, paused_by=None, is_changed=is_changed)
    [(_, paused_at, paused_by)] = found
    return Gate(name, paused_at is not None, paused_by, is_changed)


def count_leased(kind: GateKind, name: str) -> Call[int]:
    """Count runs, and cancelled ones that have not stopped."""
    kind.check(name)
    is_every = kind is GateKind.LANE and name == ALL_LANES
    params = {"lane": None, "task": None} | ({} if is_every else {kind.value: name})
    return single("count_leased", params, lambda found: found[0][0], is_read=True)


def list_writers(among: Sequence[str] | None = None) -> Call[list[str]]:
    """Name the transactions that write jobs at this moment, all or some of them."""
    writers = None if among is None else batches.array(map(batches.quote, among))
    return single("list_writers", {"writers": writers}, lambda found: [row[0] for row in found], is_read=True)


def list_lanes() -> Call[list[Lane]]:
    """Read every lane with its counts."""
    return single("list_lanes", {}, _lanes, is_read=True)


def _lanes(rows: Sequence[Row]) -> list[Lane]:
    lanes: dict[str, Lane] = {}
    counts: dict[str, dict[JobState, int]] = {}
    for name, paused_at, paused_by, state, jobs in rows:
        if name not in lanes:
            counts[name] = {}
            lanes[name] = Lane(name, paused_at, paused_by, counts[name])
        if state is not None:
            counts[name][JobState(state)] = jobs
    return list(lanes.values())

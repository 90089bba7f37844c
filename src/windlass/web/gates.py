"""What pausing, resuming and draining answers, for lanes and tasks alike."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from windlass.core.gate import Drain, Gate
from windlass.store.gates import Gates

Force = Annotated[bool, Query(description="Also for a name that nothing has declared and that has no jobs.")]


class GateOut(BaseModel):
    """A lane or task as the request left it."""

    name: str
    is_paused: bool
    paused_by: str | None
    is_changed: bool
    """False when it was so before."""


class DrainOut(BaseModel):
    """A paused lane or task and what still runs in it; ask again until it is done."""

    name: str
    running: int
    is_settled: bool
    """Otherwise a claim may still be under way."""
    is_done: bool


async def chosen(gates: Gates, name: str, *, force: bool) -> None:
    """Refuse a name that nothing has declared, unless it is meant."""
    if not force:
        await gates.ensure_known(name)


def gate_out(gate: Gate) -> GateOut:
    """Show a gate."""
    return GateOut(name=gate.name, is_paused=gate.is_paused, paused_by=gate.paused_by, is_changed=gate.is_changed)


def drain_out(drain: Drain) -> DrainOut:
    """Show a drain."""
    return DrainOut(name=drain.name, running=drain.running, is_settled=drain.is_settled, is_done=drain.is_done)

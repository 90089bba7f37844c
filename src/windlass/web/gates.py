"""What pausing, resuming and draining answers, for lanes and tasks alike."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from windlass.store.gates import Gates

Force = Annotated[bool, Query(description="Also for a name that nothing has declared and that has no jobs.")]


async def chosen(gates: Gates, name: str, *, force: bool) -> Gates:
    """Return the gates; refuse a name that nothing has declared, unless it is meant."""
    if not force:
        await gates.ensure_known(name)
    return gates

"""Lanes and tasks: paused, resumed and drained."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from typing import ClassVar

from windlass.core.blocking import twin_of
from windlass.core.explanation import Explanation
from windlass.core.gate import ALL_LANES, BUILT_IN_LANES, Drain, Gate, GateKind
from windlass.core.known_task import KnownTask
from windlass.errors import GateNotFound
from windlass.store.calls import explain, gates, reads, tasks
from windlass.store.noun import Noun, verb

_LOOKS = 500
_PAUSE_SECONDS = 0.01


class Gates(Noun):
    """What lanes and tasks have in common; they may be paused before anything has declared them."""

    kind: ClassVar[GateKind]

    async def pause(self, name: str) -> Gate:
        """Let no job be claimed from now on; a claim made from an older view takes nothing."""
        return await self._run(gates.pause(self.kind, name))

    pause_sync = twin_of(pause)

    async def resume(self, name: str) -> Gate:
        """Let jobs be claimed again."""
        return await self._run(gates.resume(self.kind, name))

    resume_sync = twin_of(resume)

    async def running_in(self, name: str) -> int:
        """Count leased jobs: runs, and cancelled ones that have not stopped."""
        return await self._run(gates.count_leased(self.kind, name))

    running_in_sync = twin_of(running_in)

    async def drain(self, name: str) -> Drain:
        """Pause, and count what still runs once nothing more can start.

        On PostgreSQL a claim compares the gate's version in its own snapshot. One that took its snapshot before the pause
        committed may commit after it, and a count in between sees nothing running. So we look twice: at who writes
        jobs after the pause, and at the leases once all of those have ended. A claim that comes later sees the new version
        and takes nothing; an older one has ended, and its leases are counted. A foreign transaction that stays open for
        seconds leaves the drain unsettled; ask again.
        """
        await self.pause(name)
        is_settled = await self._outlast(await self._run(gates.list_writers()))
        return Drain(name, await self.running_in(name), is_settled)

    drain_sync = twin_of(drain)

    async def _outlast(self, writers: list[str]) -> bool:
        for _ in range(_LOOKS):
            if not writers:
                return True
            await asyncio.sleep(_PAUSE_SECONDS)
            writers = await self._run(gates.list_writers(writers))
        return not writers

    async def names(self) -> set[str]:
        """List the names that were declared, paused or have jobs."""
        raise NotImplementedError

    async def ensure_known(self, name: str, *, may_force: bool = True) -> None:
        """Refuse a name that was never declared or paused and has no jobs; raises GateNotFound with the nearest names.

        The message mentions `force`, unless the caller has no such option.
        """
        self.kind.check(name)
        known = await self.names()
        if name not in known:
            raise GateNotFound(self.kind.value, name, get_close_matches(name, sorted(known)), may_force=may_force)

    ensure_known_sync = twin_of(ensure_known)


class Lanes(Gates):
    """Lanes that were paused, declared or have jobs; the name `*` pauses and resumes every lane."""

    kind = GateKind.LANE
    list, list_sync = verb(gates.list_lanes)

    async def get(self, name: str) -> Gate:
        """Return whether it is paused, and by whom."""
        return await self._run(gates.get(self.kind, name))

    async def explain(self, name: str) -> Explanation:
        """Explain why its jobs do or do not move; raises GateNotFound with the nearest names."""
        await self.ensure_known(name, may_force=False)
        return await self._run(explain.explain_lane(name))

    explain_sync = twin_of(explain)

    async def names(self) -> set[str]:
        """List the lanes that were declared, paused or have jobs, those every fleet has, and `*`."""
        return {lane.name for lane in await self.list()} | BUILT_IN_LANES | {ALL_LANES}


class KnownTasks(Gates):
    """Tasks that processes declared; the entries outlive them."""

    kind = GateKind.TASK
    declare, declare_sync = verb(tasks.declare)
    knows, knows_sync = verb(tasks.knows)
    get, get_sync = verb(tasks.get)
    list, list_sync = verb(tasks.list_tasks)
    count, count_sync = verb(tasks.count)

    async def explain(self, name: str) -> Explanation:
        """Explain why its jobs do or do not move; raises GateNotFound with the nearest names."""
        await self.ensure_known(name, may_force=False)
        return await self._run(explain.explain_task(name))

    explain_sync = twin_of(explain)

    async def names(self) -> set[str]:
        """List the tasks that were declared, paused or have jobs."""
        found = {count.task for count in await self._run(reads.count_jobs()) if count.jobs}
        page: Sequence[KnownTask] = ()
        while page := await self.list(after=page[-1].name if page else ""):
            found.update(task.name for task in page)
        return found

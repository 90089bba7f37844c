"""Does harm by a seeded plan and writes down what it did."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import psycopg

from tests.faults.fleet import Fleet, kill
from tests.faults.ledger import now_ns
from tests.faults.proxy import Proxy
from tests.faults.reasons import STUCK, STUCK_TIMEOUT_S
from tests.faults.site import Site
from tests.faults.snapshot import Tables
from tests.faults.timeline import Fault, Timeline
from windlass.core.job import NewJob
from windlass.core.payload import encode_object
from windlass.store import open_store
from windlass.store.sqlite_library import sqlite_driver as driver

MOST_AT_ONCE = 2
Harm = Callable[[], Coroutine[Any, Any, None]]
_LOCKED_ROWS = 30
_HURRIED = 0.3
"""How often a process is told to stop a second time."""
_LOST_S = 25.0
"""How long connections stay black holes: longer than a client may need to give them up."""


class Injector:
    """Chooses a fault and a victim again and again."""

    def __init__(self, seed: int, site: Site, fleet: Fleet, timeline: Timeline, *, lease_s: float, grace_s: float) -> None:
        # Apart, so that which faults come, and when, does not depend on whom the ones before could be done to.
        self._plan = Random(f"{seed}-plan")
        self._rng = Random(f"{seed}-victims")
        self._site = site
        self._fleet = fleet
        self._timeline = timeline
        self._lease_s = lease_s
        self._grace_s = grace_s
        self._tables = Tables(site.url)
        self._busy: set[str] = set()
        """Whoever is being hurt: one fault at a time for each victim, so that each cause is known."""
        self._count = 0

    @property
    def kinds(self) -> Mapping[str, tuple[float, Harm]]:
        """Every fault that can be done here, with how often it comes."""
        everywhere: dict[str, tuple[float, Harm]] = {
            "kill": (5.0, self._kill),
            "kill_server": (1.5, self._kill_server),
            "kill_client": (1.0, self._kill_client),
            "kill_child": (1.5, self._kill_child),
            "freeze": (4.0, self._freeze),
            "freeze_server": (0.7, self._freeze_server),
            "term": (2.5, self._term),
            "suspend": (0.7, self._suspend),
            "files": (1.5, self._files),
            "block": (1.5, self._block),
            "overdue": (1.0, self._overdue),
            "hog": (0.7, self._hog),
            "poison": (0.7, self._poison),
        }
        if self._site.disk is not None:
            everywhere["disk"] = (2.0, self._fill_disk)
        if self._site.is_sqlite:
            return everywhere | {"lock": (3.0, self._lock_file)}
        return everywhere | {
            "backend": (3.0, self._terminate_backends),
            "restart": (1.0, self._restart),
            "hold": (2.5, self._hold),
            "term_held": (1.0, self._term_held),
            "outage": (1.0, self._hold_all),
            "lose": (1.5, self._lose),
            "cut": (2.0, self._cut),
            "stall": (2.0, self._stall),
            "row_lock": (2.5, self._lock_rows),
            "table_lock": (1.0, self._lock_table),
        }

    async def run(self, until_ns: int, *, only: frozenset[str], pause_s: float) -> None:
        """Inject until the time is over, and wait for the end of every fault."""
        kinds = {name: kind for name, kind in self.kinds.items() if not only or name in only}
        if unknown := only - kinds.keys():
            raise SystemExit(f"faults: there is no {', '.join(sorted(unknown))} here, only {', '.join(self.kinds)}")
        going: set[asyncio.Task[None]] = set()
        while now_ns() < until_ns:
            [name] = self._plan.choices(list(kinds), [weight for weight, _ in kinds.values()])
            if len(going) < MOST_AT_ONCE:
                going.add(asyncio.create_task(self._survive(name, kinds[name][1]), name=name))
            await asyncio.sleep(self._plan.uniform(0.3, 1.7) * pause_s)
            for task in [task for task in going if task.done()]:
                going.discard(task)
                task.result()
        for task in going:
            await task

    async def _survive(self, name: str, harm: Harm) -> None:
        """Do harm; that the database cannot be reached for it is no fault of anybody's."""
        try:
            await harm()
        except (psycopg.Error, driver.Error, OSError) as error:
            print(f"faults: {name} could not be done: {error}", flush=True)

    @asynccontextmanager
    async def _fault(
        self, kind: str, target: str, *, pids: list[int] | None = None, is_outage: bool = False, detail: str = ""
    ) -> AsyncIterator[Fault]:
        fault = self._timeline.begin(kind, target, pids=pids, is_outage=is_outage, detail=detail)
        self._busy.add(target)
        try:
            yield fault
        finally:
            fault.ended_ns = now_ns()
            self._busy.discard(target)

    def _worker(self) -> tuple[str, int] | None:
        """Choose a process that runs jobs and is not being hurt."""
        free = [
            (name, pid)
            for name, role in self._fleet.roles.items()
            if role.is_worker and name not in self._busy and role.term_sent is None
            for pid in self._fleet.holders(name)
        ]
        return self._rng.choice(free) if free else None

    def _length(self, *, most: float = 2.5) -> float:
        """Choose how long a fault lasts: shorter or longer than a lease."""
        return self._rng.choice((self._rng.uniform(0.1, 0.6), self._rng.uniform(1.1, most))) * self._lease_s

    async def _kill(self) -> None:
        if (victim := self._worker()) is not None:
            async with self._fault("kill", victim[0], pids=[victim[1]], detail=str(victim[1])):
                kill(victim[1], signal.SIGKILL)

    async def _kill_server(self) -> None:
        if "server" in self._busy:
            return
        async with self._fault("kill_server", "server"):
            for pid in self._fleet.pids("server"):
                kill(pid, signal.SIGKILL)

    async def _kill_client(self) -> None:
        name = self._rng.choice([name for name, role in self._fleet.roles.items() if not role.is_worker and name != "server"])
        if name in self._busy:
            return
        pids = self._fleet.pids(name)
        async with self._fault("kill_client", name, pids=pids):
            for pid in pids:
                kill(pid, signal.SIGKILL)

    async def _kill_child(self) -> None:
        victim = self._worker()
        children = self._fleet.grandchildren(victim[0]) if victim is not None else []
        if children and victim is not None:
            child = self._rng.choice(children)
            async with self._fault("kill_child", victim[0], pids=[child], detail=f"{child} of {children}"):
                kill(child, signal.SIGKILL)

    async def _freeze(self) -> None:
        if (victim := self._worker()) is not None:
            await self._stop_for("freeze", victim[0], [victim[1]], self._length())

    async def _freeze_server(self) -> None:
        if "server" in self._busy or self._fleet.roles["server"].term_sent is not None:
            return
        await self._stop_for("freeze_server", "server", self._fleet.pids("server"), self._length(most=1.5))

    async def _stop_for(self, kind: str, name: str, pids: list[int], seconds: float) -> None:
        async with self._fault(kind, name, pids=pids, detail=f"{seconds:.1f} s") as fault:
            try:
                for pid in pids:
                    kill(pid, signal.SIGSTOP)
                if self._tables.writer() in pids:
                    fault.is_outage = True
                    fault.detail += ", inside a write"
                await asyncio.sleep(seconds)
            finally:
                for pid in pids:
                    kill(pid, signal.SIGCONT)

    def _stoppable(self, database_class: str | None = None) -> list[str]:
        return [
            name
            for name, role in self._fleet.roles.items()
            if (role.is_worker or name == "server") and name not in self._busy and role.term_sent is None
            if database_class is None or role.database_class == database_class
        ]

    async def _term(self) -> None:
        """Tell a process to stop, and perhaps a second time."""
        if names := self._stoppable():
            name = self._rng.choice(names)
            async with self._fault("term", name) as fault:
                self._fleet.terminate(name)
                if self._rng.random() < _HURRIED:
                    await asyncio.sleep(self._rng.uniform(0.0, 1.0))
                    fault.detail = "twice"
                    self._fleet.hurry(name)

    async def _term_held(self) -> None:
        """Tell a process to stop while no byte of its passes to the database or back."""
        async with self._wire("term_held") as proxy:
            if proxy is None or not (names := self._stoppable(proxy.name)):
                return
            proxy.hold()
            await asyncio.sleep(self._rng.uniform(0.2, 2.0))
            name = self._rng.choice(names)
            self._fleet.terminate(name)
            process = self._fleet.roles[name].process
            # Until the fleet has seen it end, or has complained and ended it.
            while process is not None and process.poll() is None:  # noqa: ASYNC110 - processes set no events
                await asyncio.sleep(0.1)

    async def _suspend(self) -> None:
        """Let every process stand still, as on a machine that sleeps: nobody may lose a lease by that."""
        names = list(self._fleet.roles)
        if self._busy & {*names, *(f"wire {name}" for name in self._site.proxies)}:
            return
        if any(role.term_sent is not None for role in self._fleet.roles.values()):
            # It would be late through no fault of its own.
            return
        self._busy |= {*names}
        pids = [pid for name in names for pid in self._fleet.pids(name)]
        seconds = self._length()
        try:
            async with self._fault("suspend", "everybody", is_outage=True, detail=f"{seconds:.1f} s"):
                for pid in pids:
                    kill(pid, signal.SIGSTOP)
                try:
                    await asyncio.sleep(seconds)
                finally:
                    for pid in self._rng.sample(pids, len(pids)):
                        kill(pid, signal.SIGCONT)
        finally:
            self._busy -= {*names}

    async def _files(self) -> None:
        """Leave a process no file descriptors."""
        if (victim := self._worker()) is None:
            return
        name, pid = victim
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        opened = len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - of another process, and quick
        async with self._fault("files", name, pids=[pid], detail=str(pid)):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened, before[1]))
            try:
                await asyncio.sleep(self._length(most=1.5))
            finally:
                with suppress(ProcessLookupError):
                    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    async def _enqueue(self, kind: str, task: str, payload: dict[str, object], max_attempts: int) -> None:
        self._count += 1
        fault = self._timeline.begin(kind, task, detail=str(payload))
        store = open_store(self._site.url, rng=Random())
        try:
            await store.enqueue([NewJob(task=task, payload=encode_object(payload), max_attempts=max_attempts)])
        except Exception as error:  # noqa: BLE001 - another fault may be going on
            fault.detail = f"not enqueued: {error}"
        finally:
            fault.ended_ns = now_ns()
            await store.aclose()

    async def _block(self) -> None:
        await self._enqueue("block", "blocker", {"seconds": round(self._length(most=1.5), 1)}, 30)

    async def _overdue(self) -> None:
        """Block an event loop for longer than its worker waits before it replaces the process."""
        seconds = STUCK_TIMEOUT_S + self._grace_s + self._rng.uniform(2.0, 3.0)
        await self._enqueue("overdue", STUCK, {"seconds": round(seconds, 1)}, 3)

    async def _hog(self) -> None:
        await self._enqueue("hog", "hog", {"seconds": round(self._lease_s * self._rng.uniform(1.2, 1.6), 1)}, 6)

    async def _poison(self) -> None:
        await self._enqueue("poison", "killer", {"way": self._rng.choice(("segfault", "exit"))}, 3)

    async def _lock_file(self) -> None:
        if "database" in self._busy:
            return
        connection = self._tables.connect()
        try:
            async with self._fault("lock", "database", is_outage=True, detail="begin immediate"):
                await asyncio.to_thread(connection.execute, "begin immediate")
                await asyncio.sleep(self._length(most=1.5))
                connection.execute("rollback")
        finally:
            connection.close()

    async def _fill_disk(self) -> None:
        if "database" in self._busy:
            return
        # PostgreSQL refuses what needs room and does the rest: some workers may renew while others cannot.
        pids = [] if self._site.is_sqlite else [pid for name in self._fleet.roles for pid in self._fleet.pids(name)]
        async with self._fault("disk", "database", pids=pids, is_outage=True):
            await asyncio.to_thread(self._site.limit_disk, is_full=True)
            try:
                await asyncio.sleep(self._length(most=1.5))
            finally:
                await asyncio.to_thread(self._site.limit_disk, is_full=False)
                await asyncio.to_thread(self._site.revive)

    async def _terminate_backends(self) -> None:
        if "database" in self._busy:
            return
        async with self._fault("backend", "database"):
            await asyncio.to_thread(
                self._run,
                "select pg_terminate_backend(pid) from (select pid from pg_stat_activity where datname = current_database() "
                f"and pid <> pg_backend_pid() order by random() limit {self._rng.choice((1, 3, 50))}) as victims",
            )

    def _run(self, statement: str) -> None:
        connection = self._tables.connect()
        try:
            connection.execute(statement)
        finally:
            connection.close()

    async def _restart(self) -> None:
        if "database" in self._busy:
            return
        assert self._site.server is not None
        async with self._fault("restart", "database", is_outage=True):
            await asyncio.to_thread(self._site.server.stop, "immediate")
            try:
                await asyncio.sleep(self._rng.choice((0.0, self._length(most=1.5))))
            finally:
                await asyncio.to_thread(self._site.server.start)

    @asynccontextmanager
    async def _wire(self, kind: str, *, loses_leases: bool = True, detail: str = "") -> AsyncIterator[Proxy | None]:
        """Hurt the wire of a class of clients, whose processes may lose their leases by it; it is whole again afterwards."""
        free = [proxy for name, proxy in self._site.proxies.items() if f"wire {name}" not in self._busy]
        if not free:
            yield None
            return
        proxy = self._rng.choice(free)
        async with self._fault(kind, f"wire {proxy.name}", pids=self._behind(proxy, loses_leases), detail=detail) as fault:
            try:
                yield proxy
            finally:
                proxy.heal()
                # Those that were started meanwhile too.
                fault.pids += self._behind(proxy, loses_leases)

    def _behind(self, proxy: Proxy, loses_leases: bool) -> list[int]:  # noqa: FBT001 - passed on
        roles = [role for role in self._fleet.roles.values() if role.database_class == proxy.name and role.is_worker]
        return [pid for role in roles for pid in self._fleet.pids(role.name)] if loses_leases else []

    async def _hold(self) -> None:
        """Let no byte through for a while; then deliver what was held, or cut."""
        async with self._wire("hold") as proxy:
            if proxy is not None:
                proxy.hold()
                await asyncio.sleep(self._length(most=3.0))
                if self._rng.random() < 0.5:
                    proxy.cut()

    async def _hold_all(self) -> None:
        """Make the database vanish for everybody: nobody may lose a lease by that."""
        proxies = list(self._site.proxies.values())
        if "database" in self._busy or any(f"wire {proxy.name}" in self._busy for proxy in proxies):
            return
        names = {f"wire {proxy.name}" for proxy in proxies}
        self._busy |= names
        try:
            async with self._fault("outage", "database", is_outage=True):
                for proxy in proxies:
                    proxy.hold()
                await asyncio.sleep(self._length())
                for proxy in proxies:
                    if self._rng.random() < 0.5:
                        proxy.cut()
                    proxy.heal()
        finally:
            for proxy in proxies:
                proxy.heal()
            self._busy -= names

    async def _lose(self) -> None:
        """Make black holes of a class's connections; new ones work at once."""
        async with self._wire("lose") as proxy:
            if proxy is not None:
                proxy.lose()
                await asyncio.sleep(_LOST_S)

    async def _cut(self) -> None:
        is_long = self._rng.random() < 0.5
        async with self._wire("cut", loses_leases=is_long) as proxy:
            if proxy is not None:
                proxy.refuse(refuses=is_long)
                proxy.cut()
                await asyncio.sleep(self._length(most=1.5) if is_long else 0)

    async def _stall(self) -> None:
        delay_s = self._rng.uniform(0.05, 0.6)
        async with self._wire("stall", detail=f"{delay_s:.2f} s") as proxy:
            if proxy is not None:
                proxy.delay(delay_s)
                await asyncio.sleep(self._length(most=2.0))

    async def _lock_rows(self) -> None:
        await self._hold_lock(
            "row_lock", f"select id from windlass_jobs where state = 'running' limit {_LOCKED_ROWS} for update", is_outage=False
        )

    async def _lock_table(self) -> None:
        await self._hold_lock("table_lock", "lock table windlass_jobs in exclusive mode", is_outage=True)

    async def _hold_lock(self, kind: str, statement: str, *, is_outage: bool) -> None:
        """Hold a lock in a stranger's transaction: nobody may lose a lease by that."""
        if "database" in self._busy:
            return
        connection = self._tables.connect()
        try:
            async with self._fault(kind, "database", is_outage=is_outage) as fault:
                connection.execute("begin")
                connection.execute("set local statement_timeout = '10s'")
                locked = await asyncio.to_thread(connection.execute, statement)
                fault.jobs = [job_id for (job_id,) in locked] if locked.description else []
                await asyncio.sleep(self._length(most=1.5))
                connection.execute("rollback")
        finally:
            connection.close()

"""One run: load, faults, healing, and the tables and ledger that are left to be judged."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.faults.fleet import Fleet, Role
from tests.faults.history import put_together
from tests.faults.injector import Injector
from tests.faults.judge import Case, Judge, Verdict, Violation
from tests.faults.ledger import VARIABLE, now_ns, read_ledger
from tests.faults.load import PAUSED_LANE
from tests.faults.pull_worker import LEASE_S as PULL_LEASE_S
from tests.faults.reasons import SECOND_NS
from tests.faults.site import Site, build_clock_shim, open_site
from tests.faults.snapshot import Tables
from tests.faults.timeline import Timeline
from windlass.errors import WindlassError
from windlass.store import Store, open_store
from windlass.store.doctor import check

LEASE_S = 4.0
GRACE_S = 2.0
CLIENTS = ("enqueuer", "enqueuer-http", "enqueuer-tx", "operator")
PULLERS = ("pull-1", "pull-2")
WORKERS = ("left", "right", "skewed")
_APP = "tests.faults.jobs_app:app"
_WARM_UP_S = 6.0
_SETTLE_S = PULL_LEASE_S + LEASE_S + 45.0
_MOST_LOG = 16 << 20
_OFFSETS_S = (-86_400, -3_600, -60, 60, 3_600, 86_400)


@dataclass(frozen=True)
class Plan:
    """What was asked for."""

    database: str
    seed: int
    minutes: float
    only: frozenset[str] = frozenset()
    jobs_per_second: float = 180.0
    pause_s: float = 4.0


@dataclass
class Outcome:
    """What a run came to."""

    plan: Plan
    verdict: Verdict
    case: Case
    timeline: Timeline
    skipped: list[str] = field(default_factory=list)
    drained_s: float | None = None
    seconds: float = 0.0

    @property
    def violations(self) -> list[Violation]:
        return self.verdict.violations


class FaultRun:
    """Runs a plan in a folder, which keeps logs and ledgers."""

    def __init__(self, plan: Plan, folder: Path, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._folder = folder
        self._say = say
        self._timeline = Timeline()
        self._ledgers = folder / "ledgers"
        # Of an earlier run in the same folder.
        shutil.rmtree(self._ledgers, ignore_errors=True)
        self._ledgers.mkdir(parents=True)
        self._fleet = Fleet(folder, self._timeline, grace_s=GRACE_S)
        self._secret = secrets.token_hex(16)
        self._ports = {"server": _free_port(), "right": _free_port()}
        self._shim: Path | None = None

    async def run(self) -> Outcome:
        """Do all of it; whatever happens, no process is left behind."""
        started = time.monotonic()
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        with open_site(self._plan.database) as site:
            try:
                outcome = await self._attack(site)
            finally:
                self._fleet.close()
        outcome.seconds = time.monotonic() - started
        return outcome

    async def _attack(self, site: Site) -> Outcome:
        if not site.is_sqlite:
            self._shim = build_clock_shim(self._folder)
            if self._shim is None:
                site.skipped.append("clock offsets (there is no C compiler)")
        else:
            site.skipped.append("clock offsets (SQLite has no clock but its processes')")
        self._start(site)
        watcher = asyncio.create_task(self._watch(site))
        try:
            await asyncio.sleep(_WARM_UP_S)
            until_ns = now_ns() + round(self._plan.minutes * 60 * SECOND_NS)
            injector = Injector(self._plan.seed, site, self._fleet, self._timeline, lease_s=LEASE_S, grace_s=GRACE_S)
            await injector.run(until_ns, only=self._plan.only, pause_s=self._plan.pause_s)
            drained_s = await self._drain(site)
            await self._stop()
        finally:
            watcher.cancel()
        case = await self._case(site)
        return Outcome(self._plan, self._judged(case), case, self._timeline, site.skipped, drained_s)

    def _start(self, site: Site) -> None:
        fleet, python = self._fleet, "tests.faults"
        urls = [f"http://127.0.0.1:{port}" for port in self._ports.values()]
        server = ["windlass", "serve", _APP, "--port", str(self._ports["server"]), "--log-level", "warning"]
        fleet.add(Role("server", server, self._environment(site, "server"), database_class="server"))
        worker = ["windlass", "worker", _APP, "--log-level", "warning"]
        left = [*worker, "--pools", "fast=2,*=8", "--processes", "2"]
        fleet.add(Role("left", left, self._environment(site, "left"), is_worker=True, database_class="left"))
        right = ["windlass", "up", _APP, "--port", str(self._ports["right"]), "--pools", "fast=2,*=8"]
        fleet.add(Role("right", right, self._environment(site, "right"), is_worker=True, database_class="right"))
        skewed = [*worker, "--pools", "*=6"]
        fleet.add(Role("skewed", skewed, self._skewed(site), is_worker=True, database_class="right"))
        rate = str(self._plan.jobs_per_second / 3)
        for name, way in zip(CLIENTS[:3], ("direct", "http", "transaction"), strict=True):
            command = [f"{python}.enqueuer", f"{self._plan.seed}-{name}", rate, way]
            fleet.add(Role(name, command, self._environment(site, "clients"), database_class="clients"))
        operator = [f"{python}.operator", f"{self._plan.seed}"]
        fleet.add(Role("operator", operator, self._environment(site, "clients"), database_class="clients"))
        for name in PULLERS:
            command = [f"{python}.pull_worker", f"{self._plan.seed}-{name}", self._secret, *urls]
            fleet.add(Role(name, command, self._environment(site, "clients")))

    def _environment(self, site: Site, database_class: str) -> Callable[[], dict[str, str]]:
        url = site.url_of(database_class)
        return lambda: {
            VARIABLE: str(self._ledgers),
            "WINDLASS_DATABASE_URL": url,
            "WINDLASS_LEASE_SECONDS": f"{LEASE_S:g}",
            "WINDLASS_RECLAIM_INTERVAL": "500ms",
            "WINDLASS_POLL_INTERVAL": "500ms",
            "WINDLASS_GRACE": f"{GRACE_S:g}s",
            "WINDLASS_ADMIN_TOKEN": self._secret,
            "WINDLASS_TOKEN": self._secret,
            "WINDLASS_URL": ",".join(f"http://127.0.0.1:{port}" for port in self._ports.values()),
            "WINDLASS_WORKER_SECRET": self._secret,
            "BACKOFF_BASE_SEC": "1",
            "BACKOFF_MAX_SEC": "2",
            "PYTHONFAULTHANDLER": "",
        }

    def _skewed(self, site: Site) -> Callable[[], dict[str, str]]:
        """Give a process another clock at each start."""
        plain = self._environment(site, "right")
        rng = Random(self._plan.seed)

        def environment() -> dict[str, str]:
            if self._shim is None:
                return plain()
            offset = rng.choice(_OFFSETS_S)
            fault = self._timeline.begin("clock", "skewed", detail=f"{offset} s")
            fault.ended_ns = fault.started_ns
            return plain() | {"LD_PRELOAD": str(self._shim), "WINDLASS_TEST_CLOCK_OFFSET": str(offset)}

        return environment

    async def _watch(self, site: Site) -> None:
        """Keep the fleet running, and tell every ten seconds how it goes."""
        told = time.monotonic()
        while True:
            self._fleet.look()
            self._timeline.wall.look()
            await asyncio.sleep(0.1)
            if time.monotonic() - told >= 10:
                told = time.monotonic()
                self._bound_logs()
                self._say(await asyncio.to_thread(self._progress, site))

    def _bound_logs(self) -> None:
        """Keep the disk from being filled by what processes say of their troubles."""
        for path in self._folder.glob("*.log"):
            if path.stat().st_size > _MOST_LOG:
                self._timeline.complaints.append(f"{path.name} grew beyond {_MOST_LOG >> 20} MiB")
                path.with_suffix(".log.head").write_bytes(path.read_bytes()[:100_000])
                os.truncate(path, 0)

    def _progress(self, site: Site) -> str:
        size = sum(path.stat().st_size for path in self._ledgers.glob("*.ledger"))
        going = [f"{fault.kind} {fault.target}" for fault in self._timeline.faults if fault.ended_ns is None]
        try:
            waiting = str(Tables(site.url).count_unfinished())
        except Exception as error:  # noqa: BLE001 - the database may be away, which is what this is about
            waiting = type(error).__name__
        return (
            f"{len(self._timeline.faults)} faults, {size / 1e6:.1f} MB of ledger, {waiting} jobs under way"
            f"{', now: ' + ', '.join(going) if going else ''}"
        )

    async def _drain(self, site: Site) -> float | None:
        """Let everything heal and wait until all is done; None when it is not within the time."""
        self._say("the faults are over; waiting until every job is done")
        for proxy in site.proxies.values():
            proxy.heal()
        await self._retire(*CLIENTS)
        started = time.monotonic()
        await self._undo(site)
        while time.monotonic() - started < _SETTLE_S:
            if await asyncio.to_thread(Tables(site.url).count_unfinished) == 0:
                return time.monotonic() - started
            await asyncio.sleep(0.2)
        return None

    async def _undo(self, site: Site) -> None:
        """Resume what an operator was killed in the middle of, and end what would make jobs for ever."""
        store = open_store(site.url, rng=Random())
        try:
            await store.lanes.resume(PAUSED_LANE)
            await store.tasks.resume("flaky")
            schedule, template = await store.schedules.get("tock"), await store.schedules.get("spawned")
            await store.enable([schedule.id])
            # It would go on making jobs when no worker is left to run them.
            await store.disable([template.id])
        except WindlassError as error:
            self._say(f"could not undo what operators did: {error}")
        finally:
            await store.aclose()

    async def _stop(self) -> None:
        await self._retire(*PULLERS)
        await self._retire(*WORKERS, "server")

    async def _retire(self, *names: str) -> None:
        self._fleet.retire(*names)
        # The fleet complains of those that do not end, and kills them.
        while not self._fleet.are_gone(*names):  # noqa: ASYNC110 - the processes end by themselves
            await asyncio.sleep(0.1)

    async def _case(self, site: Site) -> Case:
        snapshot = await asyncio.to_thread(Tables(site.url).read)
        store = open_store(site.url, rng=Random())
        try:
            snapshot.problems = [f"{rule} of job {job}: {detail}" for rule, job, detail in await _doctored(store)]
        finally:
            await store.aclose()
        holders = {pid: role.name for role in self._fleet.roles.values() for pid in role.holders}
        return Case(
            snapshot,
            await asyncio.to_thread(lambda: put_together(read_ledger(self._ledgers))),
            self._timeline.faults,
            self._timeline.deaths,
            holders,
            LEASE_S,
            PULL_LEASE_S,
            self._timeline.wall,
            stops=self._timeline.stops,
            logs={name: self._log_of(name) for name in (*WORKERS, "server")},
        )

    def _log_of(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    def _judged(self, case: Case) -> Verdict:
        verdict = Judge(case).judge()
        verdict.violations += [Violation("process", None, complaint) for complaint in self._timeline.complaints]
        return verdict


async def _doctored(store: Store) -> list[tuple[str, int | None, str]]:
    return [(problem.rule, problem.job_id, problem.detail) for problem in await check(store)]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def new_folder() -> Path:
    """Make a folder for the report, the logs and the ledgers."""
    return Path(tempfile.mkdtemp(prefix=f"windlass-faults-{os.getpid()}-"))


def count_kinds(timeline: Timeline) -> Counter[str]:
    """Count the faults by their kind."""
    return Counter(fault.kind for fault in timeline.faults)

"""A database that vanishes without a word: real processes go on when it is back, and can be stopped while it is away."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from random import Random

import pytest

from tests.crash import vanished_host
from tests.crash.processes import until
from tests.support.postgres_server import PostgresServer
from tests.support.silent_proxy import SilentProxy, silent_proxy
from tests.support.stores import fresh_url
from windlass import __version__
from windlass.core.job import JobState, NewJob
from windlass.core.payload import encode_object
from windlass.store import Store, open_store
from windlass.store.doctor import check

GRACE_S = 1
LIMIT_S = 2
RECOVERY_S = 15
# On top of what is promised: how long a busy machine may take to end a process.
SLACK_S = 1.0


@pytest.fixture
def url(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[str]:
    with fresh_url("postgres", tmp_path, postgres_server) as made:
        yield made


@pytest.fixture
def proxy(url: str) -> Iterator[SilentProxy]:
    with silent_proxy(url) as made:
        yield made


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """Give the test its own way to the database, past the proxy."""
    opened = open_store(url, rng=Random(1))
    yield opened
    await opened.aclose()


class Commands:
    """Commands that reach the database through the proxy."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._ledger = folder / "ledger"
        self._log = folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, limit_s: int = LIMIT_S, lease_s: int = 20) -> subprocess.Popen[bytes]:
        ours = {
            "WINDLASS_DATABASE_URL": self._url,
            "WINDLASS_GRACE": f"{GRACE_S}s",
            "WINDLASS_STATEMENT_TIMEOUT": f"{limit_s}s",
            "WINDLASS_LEASE_SECONDS": str(lease_s),
            "WINDLASS_POLL_INTERVAL": "200ms",
            "WINDLASS_TEST_LEDGER": str(self._ledger),
        }
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "windlass", *command], env=os.environ | ours, stdout=log, stderr=log
            )
        self._running.append(process)
        return process

    def count(self, word: str) -> Counter[int]:
        """How often each job left this word."""
        text = self._ledger.read_text() if self._ledger.exists() else ""
        # The last line may be half written.
        whole = text[: text.rfind("\n") + 1].splitlines()
        return Counter(int(line.split()[1]) for line in whole if line.split()[0] == word)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def close(self) -> None:
        for process in self._running:
            if process.poll() is None:
                process.kill()
                process.wait()
        print(self.said[-6000:])


@pytest.fixture
def commands(proxy: SilentProxy, tmp_path: Path) -> Iterator[Commands]:
    made = Commands(proxy.url, tmp_path)
    yield made
    made.close()


async def enqueue(store: Store, task: str, count: int = 1, **payload: object) -> list[int]:
    return [one.id for one in await store.enqueue([NewJob(task=task, payload=encode_object(payload)) for _ in range(count)])]


async def is_completed(store: Store, ids: list[int]) -> bool:
    return all([(await store.get(job_id)).state is JobState.COMPLETED for job_id in ids])


# The second is what a process has without a setting.
@pytest.mark.parametrize("limit_s", [LIMIT_S, 10])
async def test_worker_under_load_goes_on_after_a_silence_and_repeats_nothing(
    store: Store, proxy: SilentProxy, commands: Commands, limit_s: int
) -> None:
    ids = await enqueue(store, "work", 3000, seconds=0.01)
    commands.start("worker", "tests.crash.jobs_app:app", "--alone", "--pools", "*=20", limit_s=limit_s, lease_s=30)
    await until(lambda: len(commands.count("end")) > 100, "the work to begin")
    proxy.silence()
    # Longer than the limit, so that every exchange that was under way is given up, and shorter than the lease.
    await asyncio.sleep(limit_s + 3)
    ended = len(commands.count("end"))
    ids += await enqueue(store, "work", 20)
    began = time.monotonic()
    proxy.heal()
    await until(lambda: len(commands.count("end")) > ended + 100, "the work to go on", within=RECOVERY_S)
    assert time.monotonic() - began < RECOVERY_S
    await until(lambda: set(ids) <= set(commands.count("end")), "all the work to be done")
    # What was claimed by a statement whose answer was swallowed comes back when its lease ends.
    await until(lambda: is_completed(store, ids), "every end to be recorded", within=60)
    assert set(commands.count("start").values()) == {1}
    assert await check(store) == []


async def test_worker_whose_connections_go_silent_keeps_its_leases(store: Store, proxy: SilentProxy, commands: Commands) -> None:
    lease_s = 6
    [job_id] = await enqueue(store, "work", seconds=60)
    # A statement may take longer than the lease.
    commands.start("worker", "tests.crash.jobs_app:app", "--processes", "1", limit_s=10, lease_s=lease_s)
    await until(lambda: bool(commands.count("start")), "the work to begin")
    claimed_until = (await store.get(job_id)).lease_expires_at

    async def is_renewed() -> bool:
        return (await store.get(job_id)).lease_expires_at != claimed_until

    # The connection for renewals is opened by the first of them.
    await until(is_renewed, "a renewal")
    proxy.silence()
    # What is open stays silent; new connections are served.
    proxy.heal()
    began = time.monotonic()
    while time.monotonic() - began < 2 * lease_s:
        job, now = await store.get(job_id), await store.clock()
        assert job.state is JobState.RUNNING
        assert job.lease_expires_at is not None
        assert job.lease_expires_at > now
        await asyncio.sleep(0.1)


CLAIMING, RENEWING, FINISHING = "claiming", "renewing", "finishing"


async def hang(store: Store, proxy: SilentProxy, commands: Commands, what: str) -> None:
    """Silence the database while an idle worker claims, a busy one renews, or one with ended runs reports them."""
    if what == CLAIMING:
        await until(lambda: is_up(store), "the worker to be up")
    else:
        await enqueue(store, "work", 1 if what == RENEWING else 400, seconds=60 if what == RENEWING else 0.02)
        await until(lambda: bool(commands.count("start")), "the work to begin")
    proxy.silence()
    before = proxy.swallowed
    await until(lambda: proxy.swallowed > before, "a statement to be swallowed")


async def is_up(store: Store) -> bool:
    return bool(await store.workers.list())


@pytest.mark.parametrize("what", [CLAIMING, RENEWING, FINISHING])
async def test_worker_whose_statement_hangs_ends_within_the_grace_and_five_seconds(
    store: Store, proxy: SilentProxy, commands: Commands, what: str
) -> None:
    # The limit is far off: it is not what ends the process.
    process = commands.start("worker", "tests.crash.jobs_app:app", "--processes", "1", limit_s=60, lease_s=4)
    await hang(store, proxy, commands, what)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait, 30)
    assert time.monotonic() - began < GRACE_S + 5 + SLACK_S


@pytest.mark.parametrize("what", [CLAIMING, RENEWING, FINISHING])
async def test_second_signal_ends_a_worker_whose_statement_hangs_at_once(
    store: Store, proxy: SilentProxy, commands: Commands, what: str
) -> None:
    process = commands.start("worker", "tests.crash.jobs_app:app", "--processes", "1", limit_s=60, lease_s=4)
    await hang(store, proxy, commands, what)
    process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    await asyncio.to_thread(process.wait, 30)
    assert time.monotonic() - began < 2 + SLACK_S


@pytest.mark.parametrize("signals", [1, 2])
async def test_server_and_upkeep_whose_statements_hang_can_be_stopped(
    proxy: SilentProxy, commands: Commands, signals: int
) -> None:
    wanted = [("up", "--port", "0"), ("serve", "--port", "0"), ("upkeep",)]
    processes = [commands.start(*command, limit_s=60) for command in wanted]
    await until(
        lambda: all(f"windlass {__version__}: {what}" in commands.said for what in ("server, worker", "server and")), "up"
    )
    await until(lambda: proxy.connections >= 9, "all of them to be up")
    proxy.silence()
    before = proxy.swallowed
    await until(lambda: proxy.swallowed > before, "statements to be swallowed")
    # Every one of them asks something in a poll interval.
    await asyncio.sleep(1)
    for turn in range(signals):
        await asyncio.sleep(0.3 * turn)
        for process in processes:
            process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    await asyncio.gather(*(asyncio.to_thread(process.wait, 30) for process in processes))
    assert time.monotonic() - began < (GRACE_S + 5 if signals == 1 else 2) + SLACK_S


def can_lose_packets() -> bool:
    """Whether we may make a network namespace and lose packets in it; needs root and iproute2."""
    command = f"ip link set lo up && {vanished_host.LOSE}"
    try:
        return (
            subprocess.run(["unshare", "-n", "sh", "-c", command], capture_output=True, timeout=10, check=False).returncode == 0
        )
    except OSError:
        return False


def test_kernel_gives_up_a_host_that_vanished_within_seconds(url: str) -> None:
    if not can_lose_packets():
        pytest.skip(
            "NOT TESTED that the kernel notices a vanished host: no network namespace here (root, apt-get install iproute2)"
        )
    command = ["unshare", "-n", sys.executable, "-m", "tests.crash.vanished_host", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["error"], "the statement was answered though every packet was lost"
    assert told["waited"] < 10
    assert told["recovered"] < RECOVERY_S

"""Two servers on one database say the same, and the death of one loses nothing that was acknowledged."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.remote.conftest import TOKEN
from tests.support.postgres_server import PostgresServer
from tests.support.stores import fresh_url
from windlass.remote import Client

PATIENCE_S = 60
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)")


@contextmanager
def serving(url: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run `windlass serve` as people do."""
    environment = os.environ | {
        "WINDLASS_DATABASE_URL": url,
        "WINDLASS_ADMIN_TOKEN": TOKEN,
        "WINDLASS_ACCEPT_UNKNOWN": "true",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "windlass", "serve", "--port", "0", "--log-level", "warning"]
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server says where it listens."""
    assert process.stdout is not None
    found = next((match for line in process.stdout if (match := _ADDRESS.search(line))), None)
    assert found is not None, "the server did not say where it listens"
    return found[0]


@pytest.fixture
def url(postgres_server: PostgresServer, tmp_path: Path) -> Iterator[str]:
    with fresh_url("postgres", tmp_path, postgres_server) as made:
        yield made


def test_what_one_server_is_told_the_other_knows_and_the_death_of_one_loses_nothing(url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        # Both are started before either is waited for.
        doomed, survivor = [stack.enter_context(serving(url, tmp_path)) for _ in range(2)]
        first, second = address_of(doomed), address_of(survivor)
        left, right = (stack.enter_context(Client(address, TOKEN)) for address in (first, second))
        left.breakers.force_open("email-service")
        left.lanes.pause("slow", force=True)
        assert right.breakers.get("email-service") == left.breakers.get("email-service")
        assert right.lanes.list() == left.lanes.list()
        made = left.enqueue("one", {"n": 1}, unique_key="first")
        assert right.get(made) == left.get(made)
        assert right.enqueue("one", unique_key="first").duplicate
        acknowledged = enqueue_until_one_dies(doomed, [first, second])
        jobs = list(right.list(task="stream"))
    keys = [job.unique_key for job in jobs]
    assert len(keys) == len(set(keys)), "a job was made twice"
    assert {job.number: job.unique_key for job in jobs}.items() >= acknowledged.items()
    assert len(acknowledged) == CALLERS * EACH


CALLERS = 4
EACH = 60


def enqueue_until_one_dies(doomed: subprocess.Popen[str], addresses: list[str]) -> dict[int, str]:
    """Enqueue from several threads, kill a server in the middle, and give what was acknowledged."""
    halfway = threading.Barrier(CALLERS + 1)

    def enqueue(caller: int) -> dict[int, str]:
        done = {}
        with Client(addresses, TOKEN, retries=8) as client:
            for number in range(EACH):
                if number == EACH // 3:
                    halfway.wait(PATIENCE_S)
                key = f"{caller}:{number}"
                done[client.enqueue("stream", {"key": key}, unique_key=key).number] = key
        return done

    with ThreadPoolExecutor(CALLERS) as pool:
        calls = [pool.submit(enqueue, caller) for caller in range(CALLERS)]
        halfway.wait(PATIENCE_S)
        doomed.send_signal(signal.SIGKILL)
        return {number: key for call in calls for number, key in call.result(PATIENCE_S).items()}

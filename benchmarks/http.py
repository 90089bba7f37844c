"""Measures enqueues over HTTP beside a route that only parses and answers, and raw inserts: only the ratios mean anything."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

# In place of this folder, where we would be found as the standard library's `http`.
sys.path.pop(0)
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from fastapi import Request, Response

from tests.support.postgres_server import running_postgres
from tests.support.stores import fresh_postgres, migrate_sqlite
from windlass import Windlass
from windlass.core.access import Role
from windlass.core.job import NewJob
from windlass.core.payload import decode_request, encode_object
from windlass.store import batches
from windlass.store.queries import PARAMETER, queries
from windlass.store.sqlite_library import sqlite_driver as driver
from windlass.web.job_forms import read_form
from windlass.web.listener import HttpListener, bind
from windlass.web.route import Route
from windlass.web.routes import ROUTES
from windlass.web.server import Server

TOKEN = "benchmark-admin-token"
BODY = json.dumps({"task": "note", "payload": {"to": "ann@example.org", "number": 7, "text": "x" * 60}}).encode()
DOCUMENT = batches.in_order([batches.new_job(NewJob(task="raw", payload=encode_object(json.loads(BODY)["payload"])))])
CONNECTIONS = 16
ROUNDS = 5
SECONDS = 1.5
GOALS = {"16 connections": 0.4, "1 connection": 0.5}


async def only_parse(request: Request) -> Response:
    """Parse a job and answer."""
    read_form(decode_request(await request.body(), field="body"))
    return Response(b'{"ok":true}', 201, media_type="application/json")


async def described() -> dict[str, bool]:
    """Parse a job and answer."""
    return {"ok": True}


def serve(url: str) -> None:
    """Run a server until its standard input ends, after telling its port."""
    app = Windlass(url, admin_token=TOKEN)

    @app.task
    async def note(to: str, number: int, text: str) -> None: ...

    empty = Route("POST", "/api/v1/empty", Role.PRODUCER, described, 201, hot=only_parse)
    bound = bind("127.0.0.1", 0)
    listener = HttpListener(Server(app, (*ROUTES, empty)), bound)

    async def run() -> None:
        async with app, asyncio.TaskGroup() as group:
            group.create_task(listener.listen())
            await asyncio.to_thread(sys.stdin.read)
            listener.stop()

    print(bound.getsockname()[1], flush=True)
    asyncio.run(run())


class Caller(asyncio.Protocol):
    """Sends the same request again and again on one connection, each after the answer to the one before."""

    def __init__(self, request: bytes, until: float, done: asyncio.Future[int]) -> None:
        self._request = request
        self._until = until
        self._done = done
        self._seen = b""
        self._answers = 0
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._seen += data
        head, mark, body = self._seen.partition(b"\r\n\r\n")
        if not mark or len(body) < int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0]):
            return
        assert head.startswith(b"HTTP/1.1 201"), self._seen[:500]
        assert self._transport is not None
        self._seen = b""
        self._answers += 1
        if time.monotonic() < self._until:
            self._transport.write(self._request)
        else:
            self._transport.close()
            self._done.set_result(self._answers)


async def load(port: int, path: str, connections: int, seconds: float) -> float:
    """Count answers per second."""
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {TOKEN}\r\n"
    request = f"{head}content-type: application/json\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
    loop = asyncio.get_running_loop()
    started = time.monotonic()
    waiting = []
    for _ in range(connections):
        done: asyncio.Future[int] = loop.create_future()
        await loop.create_connection(lambda done=done: Caller(request, started + seconds, done), "127.0.0.1", port)  # type: ignore[misc]
        waiting.append(done)
    answers = sum(await asyncio.gather(*waiting))
    return answers / (time.monotonic() - started)


def raw_sqlite(path: str) -> float:
    """Count durable inserts per second: our own statements for one job, in the mode the store chose for the file."""
    connection = driver.connect(path, isolation_level=None, timeout=30)
    connection.execute("pragma synchronous = full")
    statements = queries("sqlite").statements("insert_jobs", 0)

    def insert() -> None:
        connection.execute("begin immediate")
        [[last]] = connection.execute("select coalesce(max(id), 0) from windlass_jobs").fetchall()
        for statement in statements:
            connection.execute(statement, {"jobs": DOCUMENT, "now": time.time_ns() // 1000, "last_id": last}).fetchall()
        connection.execute("commit")

    try:
        return _count(insert)
    finally:
        connection.close()


def raw_postgres(dsn: str) -> float:
    """Count durable inserts per second: our own statement for one job, as the server is set."""
    [statement] = queries("postgres").statements("insert_jobs", 0)
    text = PARAMETER.sub(r"%(\1)s", statement.replace("%", "%%"))
    with psycopg.connect(dsn, autocommit=True) as connection:
        return _count(lambda: connection.execute(text, {"jobs": DOCUMENT, "now": None}).fetchall())


def _count(insert: Callable[[], Any]) -> float:
    started, done = time.monotonic(), 0
    while time.monotonic() < started + SECONDS:
        insert()
        done += 1
    return done / (time.monotonic() - started)


@contextmanager
def serving(url: str) -> Iterator[int]:
    """Run a server in a process of its own."""
    command = [sys.executable, __file__, "--serve", url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = int(process.stdout.readline())
        try:
            _wait_for(port)
            yield port
        finally:
            process.stdin.close()
            process.wait(30)


def _wait_for(port: int) -> None:
    for _ in range(500):
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the server did not come up")


def compare(name: str, url: str, raw: Callable[[], float]) -> None:
    """Print the rates of one database, rounds interleaved."""
    rates: dict[str, list[float]] = {}
    with serving(url) as port:
        asyncio.run(load(port, "/api/v1/jobs", CONNECTIONS, 0.5))
        for _ in range(ROUNDS):
            for path, word in (("/api/v1/empty", "empty"), ("/api/v1/jobs", "enqueue")):
                for connections in (CONNECTIONS, 1):
                    rate = asyncio.run(load(port, path, connections, SECONDS))
                    rates.setdefault(f"{word} {connections}", []).append(rate)
            rates.setdefault("raw 1", []).append(raw())
    found = {what: median(each) for what, each in rates.items()}
    slower = min(found["raw 1"], found["empty 1"])
    # One connection waits for both, one after the other: no server can do better than this.
    bound = 1 / (1 / found["raw 1"] + 1 / found["empty 1"])
    for what, rate in found.items():
        print(f"{name:<9} {what:<12} {rate:>9,.0f} /s", flush=True)
    ratios = {"16 connections": found["enqueue 16"] / found["empty 16"], "1 connection": found["enqueue 1"] / slower}
    for what, ratio in ratios.items():
        print(f"{name:<9} {what:<15} {ratio:>6.2f} (goal {GOALS[what]:g})", flush=True)
    share = found["enqueue 1"] / bound
    print(f"{name:<9} of what both take {share:>4.2f} (the best possible is {bound / slower:.2f} of the slower)", flush=True)


def main() -> None:
    """Measure both databases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", metavar="URL", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    chosen = parser.parse_args()
    if chosen.serve:
        serve(chosen.serve)
        return
    if chosen.only != "postgres":
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "jobs.db")
            migrate_sqlite(path)
            compare("sqlite", f"sqlite:///{path}", lambda: raw_sqlite(str(path)))
    if chosen.only != "sqlite":
        with running_postgres() as server, fresh_postgres(server) as dsn:
            compare("postgres", dsn, lambda: raw_postgres(dsn))


if __name__ == "__main__":
    os.environ.pop("WINDLASS_DATABASE_URL", None)
    main()

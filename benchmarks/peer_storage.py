"""The servers and files that peers keep their jobs in: fresh for every measurement, synced at every commit."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, Self
from urllib.parse import quote

import psycopg
from psycopg.conninfo import conninfo_to_dict

from benchmarks.process_costs import children, cpu_s, own_and_ended_s
from tests.support.postgres_server import PostgresServer, running_postgres
from windlass.store.sqlite_library import sqlite_driver


class Storage(Protocol):
    """A place for the jobs of one peer at a time."""

    def describe(self) -> str:
        """Describe the server and its settings."""
        ...

    def template(self, peer: str) -> str:
        """Make an empty place for a peer's tables; returns its address."""
        ...

    def fresh(self, peer: str) -> str:
        """Copy the place that `template` made; returns the copy's address."""
        ...

    def execute(self, address: str, statements: Sequence[str]) -> None:
        """Run statements one after another."""
        ...

    def ask(self, address: str, question: str) -> int:
        """Run a query whose answer is one number."""
        ...

    def settle(self, address: str) -> None:
        """Let the server finish what filling it has left to do, so that no measurement pays for it."""
        ...

    def cpu_s(self) -> float | None:
        """Return the processor time that the server has used, where there is one."""
        ...

    def close(self) -> None:
        """Close what asks the questions."""
        ...


class PostgresStorage:
    """One server, with a database for each measurement."""

    def __init__(self, server: PostgresServer) -> None:
        """Use a server that runs."""
        self._server = server
        self._asking: tuple[str, psycopg.Connection[Any]] | None = None
        self._last: dict[str, str] = {}
        with psycopg.connect(server.dsn) as connection:
            backend = connection.info.backend_pid
            stat = Path(f"/proc/{backend}/stat")
            is_here = "host" in conninfo_to_dict(server.dsn) and stat.exists()
            self._postmaster = int(stat.read_text(encoding="ascii").rpartition(")")[2].split()[1]) if is_here else None

    def describe(self) -> str:
        """Describe version and settings."""
        names = ("fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size", "autovacuum")
        with psycopg.connect(self._server.dsn) as connection:
            found = [f"{name}={connection.execute(f'show {name}').fetchall()[0][0]}" for name in names]
            version = connection.execute("show server_version").fetchall()[0][0]
        return f"PostgreSQL {version.split()[0]} over a unix socket ({', '.join(found)}; the rest as it comes)"

    def template(self, peer: str) -> str:
        """Create a database."""
        name = f"{peer}_template".replace("-", "_")
        self._server.drop_database(name)
        return _url(self._server.create_database(name))

    def fresh(self, peer: str) -> str:
        """Copy the template; the copy before it is dropped."""
        self.close()
        if peer in self._last:
            self._server.drop_database(self._last[peer])
        self._last[peer] = name = f"{peer}_{time.monotonic_ns()}".replace("-", "_")
        return _url(self._server.create_database(name, template=f"{peer}_template".replace("-", "_")))

    def execute(self, address: str, statements: Sequence[str]) -> None:
        """Run statements in one session."""
        with psycopg.connect(address, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def ask(self, address: str, question: str) -> int:
        """Ask over a connection that stays open."""
        if self._asking is None or self._asking[0] != address:
            self.close()
            self._asking = (address, psycopg.connect(address, autocommit=True, prepare_threshold=1))
        [[found]] = self._asking[1].execute(question.encode()).fetchall()
        return int(found)

    def settle(self, address: str) -> None:
        """Vacuum, analyse and write a checkpoint."""
        self.execute(address, ("vacuum analyze", "checkpoint"))

    def cpu_s(self) -> float | None:
        """Sum up the server and its processes, also those that have ended."""
        if self._postmaster is None:
            return None
        return own_and_ended_s(self._postmaster) + sum(cpu_s(child) for child in children(self._postmaster))

    def close(self) -> None:
        """Close the connection that asks."""
        if self._asking is not None:
            self._asking[1].close()
            self._asking = None


def _url(dsn: str) -> str:
    """Write the user where every driver looks for it."""
    known = conninfo_to_dict(dsn)
    return f"postgresql://{known['user']}@/{known['dbname']}?host={quote(str(known['host']), safe='')}"


class SqliteStorage:
    """A folder with a file for each measurement."""

    def __init__(self, folder: Path) -> None:
        """Keep the files in a folder."""
        self._folder = folder

    def describe(self) -> str:
        """Describe the library."""
        return f"SQLite {sqlite_driver.sqlite_version} for Windlass, Python's own for the others; WAL"

    def template(self, peer: str) -> str:
        """Name a file."""
        return f"sqlite:///{self._folder / f'{peer}-template.db'}"

    def fresh(self, peer: str) -> str:
        """Copy the template with its journal."""
        for old in self._folder.glob(f"{peer}-fresh.db*"):
            old.unlink()
        for part in self._folder.glob(f"{peer}-template.db*"):
            shutil.copyfile(part, self._folder / part.name.replace("-template", "-fresh"))
        return f"sqlite:///{self._folder / f'{peer}-fresh.db'}"

    def execute(self, address: str, statements: Sequence[str]) -> None:
        """Run statements in one transaction."""
        connection = sqlite_driver.connect(address.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("begin immediate")
        for statement in statements:
            connection.execute(statement)
        connection.execute("commit")
        connection.close()

    def ask(self, address: str, question: str) -> int:
        """Ask over a connection of its own; only asked at the end."""
        connection = sqlite_driver.connect(address.removeprefix("sqlite:///"), timeout=30)
        try:
            [[found]] = connection.execute(question).fetchall()
        finally:
            connection.close()
        return int(found)

    def settle(self, address: str) -> None:
        """Analyse, and bring the journal into the file."""
        connection = sqlite_driver.connect(address.removeprefix("sqlite:///"), isolation_level=None)
        connection.execute("analyze")
        connection.execute("pragma wal_checkpoint(truncate)").fetchall()
        connection.close()

    def cpu_s(self) -> float | None:
        """There is no server."""
        return None

    def close(self) -> None:
        """Nothing stays open."""


class RedisStorage:
    """One server, emptied for each measurement."""

    def __init__(self, process: subprocess.Popen[bytes], path: Path, fsync: str) -> None:
        """Use a server that listens at a unix socket."""
        self._process = process
        self._path = path
        self._fsync = fsync

    def describe(self) -> str:
        """Describe version and settings."""
        version = next(line for line in str(self._call("INFO", "server")).splitlines() if line.startswith("redis_version"))
        return f"Redis {version.partition(':')[2]} over a unix socket (appendonly yes, appendfsync {self._fsync})"

    def template(self, peer: str) -> str:
        """Empty the server."""
        return self.fresh(peer)

    def fresh(self, _peer: str) -> str:
        """Empty the server."""
        self._call("FLUSHALL")
        return f"unix://{self._path}"

    def execute(self, address: str, statements: Sequence[str]) -> None:
        """Refuse: no peer on Redis is filled."""
        raise NotImplementedError(f"Redis has no statements to run at {address}: {statements}")

    def ask(self, _address: str, question: str) -> int:
        """Run a script."""
        return int(self._call("EVAL", question, "0"))

    def settle(self, address: str) -> None:
        """There is nothing left to do."""

    def cpu_s(self) -> float | None:
        """Return the server's time."""
        return cpu_s(self._process.pid)

    def close(self) -> None:
        """Nothing stays open."""

    def is_up(self) -> bool:
        """Whether it answers."""
        try:
            return str(self._call("PING")) == "PONG"
        except OSError:
            return False

    def _call(self, *words: str) -> Any:
        with socket.socket(socket.AF_UNIX) as plug:
            plug.connect(str(self._path))
            parts = [word.encode() for word in words]
            plug.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            with plug.makefile("rb") as answers:
                head = answers.readline().rstrip()
                if head[:1] == b"-":
                    raise RuntimeError(f"Redis refused {words[0]}: {head.decode()}")
                return answers.read(int(head[1:])).decode() if head[:1] == b"$" else head[1:].decode()


@contextmanager
def running_redis(folder: Path, tools: Path, fsync: str) -> Iterator[RedisStorage]:
    """Run a Redis that writes every change to its log; raises OSError where there is none to run."""
    program, environment = _find_redis(tools)
    path = folder / "redis.sock"
    process = subprocess.Popen(
        [
            *(program, "--port", "0", "--unixsocket", str(path), "--dir", str(folder), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", fsync, "--daemonize", "no", "--loglevel", "warning"),
        ],
        env=os.environ | environment,
        stdout=subprocess.DEVNULL,
    )
    try:
        storage = RedisStorage(process, path, fsync)
        until = time.monotonic() + 10
        while not storage.is_up():
            if process.poll() is not None or time.monotonic() > until:
                raise OSError("redis-server does not start")
            time.sleep(0.02)
        yield storage
    finally:
        process.terminate()
        process.wait()


def _find_redis(tools: Path) -> tuple[str, dict[str, str]]:
    """Find the program, or take it out of Debian's packages, which are not installed: installing would start a server."""
    if found := shutil.which("redis-server"):
        return found, {}
    if not (tools / "usr/bin/redis-server").exists() and shutil.which("apt-get"):
        tools.mkdir(parents=True, exist_ok=True)
        fetch = "apt-get download -qq redis-server redis-tools liblzf1 libjemalloc2"
        unpack = "for one in *.deb; do dpkg-deb -x $one .; done; rm -f *.deb"
        command = f"({fetch} || {{ apt-get update -qq && {fetch}; }}) && {unpack}"
        subprocess.run(["/bin/sh", "-c", command], cwd=tools, check=False, capture_output=True, timeout=300)
    if not (tools / "usr/bin/redis-server").exists():
        raise OSError("there is no redis-server here, and apt-get could not bring one")
    libraries = {str(path.parent) for path in tools.glob("usr/lib/*/*.so*")}
    return str(tools / "usr/bin/redis-server"), {"LD_LIBRARY_PATH": os.pathsep.join(sorted(libraries))}


class Storages:
    """Starts each storage when a peer first needs it."""

    def __init__(self, tools: Path, redis_fsync: str) -> None:
        """Keep files in a temporary folder, and programs in `tools`."""
        self._stack = ExitStack()
        self._tools = tools
        self._redis_fsync = redis_fsync
        self.used: dict[str, Storage] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for storage in self.used.values():
            storage.close()
        self._stack.close()

    def of(self, kind: str, folder: Path) -> Storage:
        """Return the storage of a kind; raises OSError or PostgresUnavailable where it cannot be had."""
        if kind not in self.used:
            if kind == "postgres":
                self.used[kind] = PostgresStorage(self._stack.enter_context(running_postgres(is_durable=True)))
            elif kind == "redis":
                self.used[kind] = self._stack.enter_context(running_redis(folder, self._tools, self._redis_fsync))
            else:
                self.used[kind] = SqliteStorage(folder)
        return self.used[kind]

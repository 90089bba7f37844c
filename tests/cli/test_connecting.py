"""A PostgreSQL that cannot be used: the command says where it looked and why it failed, at once and without the password."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres_server import PostgresServer, url_of
from windlass import Windlass
from windlass.cli.main import main
from windlass.errors import CannotConnect

PASSWORD = "hunter2"
SSL_REQUEST = 80877103
WELL_WITHIN_S = 8.0


def complaint(url: str, *, code: int = 1) -> str:
    began = time.monotonic()
    result = CliRunner().invoke(main, ["jobs", "--database", url])
    assert result.exit_code == code, (result.output, result.exception)
    assert time.monotonic() - began < WELL_WITHIN_S
    assert PASSWORD not in result.output
    [line] = [line for line in result.stderr.splitlines() if line.startswith("windlass: ")]
    return line


@contextmanager
def refusing(text: str) -> Iterator[int]:
    """Listen as a PostgreSQL that ends every session with one error."""
    fields = b"SFATAL\0VFATAL\0C28P01\0M" + text.encode() + b"\0\0"

    def serve() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                size, kind = struct.unpack("!ii", client.recv(8))
                if kind == SSL_REQUEST:
                    client.sendall(b"N")
                    size, kind = struct.unpack("!ii", client.recv(8))
                client.recv(size - 8)
                client.sendall(b"E" + struct.pack("!i", 4 + len(fields)) + fields)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def test_a_refused_connection_names_host_port_and_database() -> None:
    port = free_port()
    line = complaint(f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/shop")
    place = f"cannot connect to PostgreSQL at 127.0.0.1, port {port}, database 'shop' as user 'ann'"
    assert line == f"windlass: {place}: the connection was refused; is the server running there?"


def test_a_port_that_is_no_number_is_named() -> None:
    assert complaint(f"postgresql://ann:{PASSWORD}@127.0.0.1:abc/shop").endswith(": the port is not a number")


def test_migrate_prints_one_line_of_its_own(tmp_path: Path) -> None:
    # A process of its own: pytest's handlers would take what the driver logs.
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "migrate", "--database", f"postgresql://127.0.0.1:{free_port()}/shop"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("windlass: cannot connect to PostgreSQL at 127.0.0.1")


async def test_a_program_is_told_the_same_by_both_kinds_of_calls() -> None:
    app = Windlass(f"postgresql://ann:{PASSWORD}@127.0.0.1:{free_port()}/shop")
    began = time.monotonic()
    with pytest.raises(CannotConnect, match="the connection was refused"):
        await app.sources.get("x")
    with pytest.raises(CannotConnect, match="the connection was refused"):
        await asyncio.to_thread(app.sources.get_sync, "x")
    assert time.monotonic() - began < WELL_WITHIN_S
    await app.aclose()


def test_a_host_that_is_not_known_is_named() -> None:
    line = complaint(f"postgresql://ann:{PASSWORD}@no-such-host.invalid/shop")
    assert "at no-such-host.invalid, port 5432, database 'shop'" in line
    assert line.endswith(": the host is not known")


def test_a_wrong_password_is_the_cause_and_not_shown() -> None:
    with refusing('password authentication failed for user "ann"') as port:
        line = complaint(f"postgresql://ann:{PASSWORD}@127.0.0.1:{port}/shop?sslmode=disable")
    assert line.endswith(f"port {port}, database 'shop' as user 'ann': the password is wrong, or there is no such user")


def test_a_missing_database_is_the_cause(postgres_server: PostgresServer) -> None:
    line = complaint(url_of(conninfo_to_dict(postgres_server.dsn) | {"dbname": "never_made"}))
    assert "database 'never_made'" in line
    assert 'database "never_made" does not exist' in line


def test_a_database_without_tables_asks_for_migrate(postgres_dsn: str) -> None:
    line = complaint(postgres_dsn, code=2)
    assert "`windlass migrate`" in line


@pytest.mark.parametrize("url", [f"mysql://ann:{PASSWORD}@host/shop", f"postgresql://ann:{PASSWORD}@[::/shop"])
def test_an_address_that_cannot_be_read_is_refused_without_its_password(url: str) -> None:
    assert "database URL: " in complaint(url, code=2)

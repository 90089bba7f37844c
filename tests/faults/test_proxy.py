from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.faults.proxy import Proxies, Proxy

MOMENT_S = 0.3


def echo(listener: socket.socket) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection: socket.socket) -> None:
    with connection, suppress(OSError):
        while data := connection.recv(1000):
            connection.sendall(data)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    """Stand before a server that answers with what it is sent."""
    with TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(Path(folder) / "socket"))
        listener.listen()
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        proxies = Proxies(str(Path(folder) / "socket"))
        yield proxies.open("clients")
        proxies.close()
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as made:
        made.sendall(b"hello")
        assert made.recv(100) == b"hello"
        yield made


def is_silent(client: socket.socket) -> bool:
    client.settimeout(MOMENT_S)
    try:
        client.recv(100)
    except TimeoutError:
        return True
    finally:
        client.settimeout(10)
    return False


def test_what_is_held_is_delivered_later(proxy: Proxy, client: socket.socket) -> None:
    proxy.hold()
    client.sendall(b"late")
    assert is_silent(client)
    proxy.release()
    assert client.recv(100) == b"late"


def test_what_is_lost_never_comes_and_new_connections_work(proxy: Proxy, client: socket.socket) -> None:
    proxy.lose()
    client.sendall(b"gone")
    assert is_silent(client)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as other:
        other.sendall(b"new")
        assert other.recv(100) == b"new"
    proxy.heal()
    with pytest.raises(ConnectionResetError):
        client.recv(100)


def test_a_cut_is_a_reset_and_new_connections_are_refused(proxy: Proxy, client: socket.socket) -> None:
    proxy.refuse(refuses=True)
    proxy.cut()
    with pytest.raises(ConnectionResetError):
        client.recv(100)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as other, suppress(ConnectionResetError):
        assert other.recv(100) == b""

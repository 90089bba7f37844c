"""Bounds on what a client may ask, on real sockets: sizes, times, connections, names."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from tests.support.stores import migrate_sqlite
from tests.web.serving import listening
from windlass import Windlass
from windlass.web.limits import HttpLimits

BEARER = "authorization: Bearer static-admin-token\r\n"
QUICK = HttpLimits(
    body_bytes=64 * 1024,
    headers_within=timedelta(seconds=1),
    body_within=timedelta(seconds=1),
    idle=timedelta(seconds=1),
    connections=250,
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    path: Path = tmp_path_factory.mktemp("limits") / "windlass.db"
    migrate_sqlite(path)
    with listening(
        Windlass(f"sqlite:///{path}", admin_token="static-admin-token", allowed_hosts="*.example.org"), QUICK
    ) as found:
        yield found


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=10)


def request(method: str, path: str, *headers: str, host: str = "localhost") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n{''.join(headers)}\r\n".encode()


def answer_to(port: int, *parts: bytes) -> bytes:
    """Send everything, and read until the server closes."""
    with connect(port) as connection:
        for part in parts:
            connection.sendall(part)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    found = b""
    try:
        while part := connection.recv(65536):
            found += part
    except ConnectionResetError:
        pass
    return found


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


CLOSE = "connection: close\r\n"
JSON = "content-type: application/json\r\n"


def test_a_body_that_says_it_is_too_large_is_not_read(port: int) -> None:
    head = request("POST", "/api/v1/sources", BEARER, JSON, f"content-length: {65 * 1024}\r\n")
    answer = answer_to(port, head)
    assert (status_of(answer), b"connection: close" in answer.lower()) == (413, True)


def test_a_chunked_body_is_cut_off_as_soon_as_it_is_too_large(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(request("POST", "/api/v1/sources", BEARER, JSON, "transfer-encoding: chunked\r\n"))
        chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
        sent = 0
        try:
            while sent < 100:
                connection.sendall(chunk)
                sent += 1
                connection.settimeout(0.05)
                try:
                    answer = connection.recv(65536)
                    break
                except TimeoutError:
                    continue
        except (BrokenPipeError, ConnectionResetError):
            return
    assert status_of(answer) == 413
    assert sent < 30


def test_without_credentials_no_body_is_read(port: int) -> None:
    head = request("POST", "/api/v1/sources", JSON, "content-length: 60000\r\n")
    answer = answer_to(port, head)
    assert (status_of(answer), b"connection: close" in answer.lower()) == (401, True)


def test_a_client_that_sends_a_byte_at_a_time_is_cut_off(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(request("POST", "/api/v1/sources", BEARER, JSON, "content-length: 1000\r\n"))
        answer, started = trickle(connection, b"x")
    assert status_of(answer) == 408
    assert time.monotonic() - started < 5


def test_a_client_that_sends_its_headers_slowly_is_cut_off(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n")
        answer, started = trickle(connection, b"x-a: b\r\n")
    assert answer == b""
    assert time.monotonic() - started < 5


def trickle(connection: socket.socket, piece: bytes) -> tuple[bytes, float]:
    """Send a piece every 50 ms until the server answers or closes."""
    started = time.monotonic()
    connection.settimeout(0.05)
    while time.monotonic() - started < 10:
        try:
            connection.sendall(piece)
            return connection.recv(65536), started
        except TimeoutError:
            continue
        except (BrokenPipeError, ConnectionResetError):
            return b"", started
    raise AssertionError("it was never cut off")


def test_a_second_request_on_a_connection_has_its_time_too(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(request("GET", "/healthz"))
        first = b""
        while not first.endswith(b"}"):
            first += connection.recv(65536)
        connection.sendall(b"GET /healthz HT")
        answer, started = trickle(connection, b"T")
    assert time.monotonic() - started < 5
    assert answer == b"" or status_of(answer) == 400


def test_silent_connections_do_not_stop_others(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(connect(port))
        started = time.monotonic()
        assert status_of(answer_to(port, request("GET", "/api/v1/lanes", BEARER, CLOSE))) == 200
        assert time.monotonic() - started < 5


def test_one_connection_too_many_ends_the_one_that_waited_longest(port: int) -> None:
    with ExitStack() as stack:
        first = stack.enter_context(connect(port))
        time.sleep(0.05)
        for _ in range(QUICK.connections):
            stack.enter_context(connect(port))
        assert read_all(first) == b""
        assert status_of(answer_to(port, request("GET", "/healthz", CLOSE))) == 200


def test_silent_connections_are_closed(port: int) -> None:
    with connect(port) as connection:
        assert read_all(connection) == b""


def test_an_address_that_is_too_large_is_refused_as_headers_are(port: int) -> None:
    for path in (f"/api/v1/{'x' * 40_000}", f"/healthz?{'x' * 40_000}"):
        assert status_of(answer_to(port, request("GET", path, CLOSE))) in {400, 431}


def test_blank_lines_do_not_hold_a_connection(port: int) -> None:
    with connect(port) as connection:
        answer, started = trickle(connection, b"\r\n")
    assert answer == b""
    assert time.monotonic() - started < 5


UPGRADE = "connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n"


@pytest.mark.parametrize("is_split", [False, True])
def test_a_request_that_would_like_another_protocol_is_answered_in_this_one_with_its_body(port: int, *, is_split: bool) -> None:
    inner = request("DELETE", "/api/v1/lanes", BEARER)
    body = b'{"url": "https://example.org", "name": "%d ' % is_split + inner.replace(b"\r\n", b" ") + b'"}'
    head = request("POST", "/api/v1/sources", BEARER, JSON, UPGRADE, f"content-length: {len(body)}\r\n")
    with connect(port) as connection:
        connection.sendall(head if is_split else head + body)
        if is_split:
            time.sleep(0.1)
            connection.sendall(body)
        connection.sendall(request("GET", "/healthz", UPGRADE, CLOSE))
        answer = read_all(connection)
    assert re.findall(rb"(?:^|\})HTTP/1.1 (\d+)", answer) == [b"201", b"200"]
    assert b"DELETE /api/v1/lanes" in answer


@pytest.mark.parametrize("start", ["0\r\n", "5\r\nhello\r\n0\r\n"])
def test_trailers_without_end_are_cut_off(port: int, start: str) -> None:
    head = request("POST", "/login", "content-type: application/x-www-form-urlencoded\r\n", "transfer-encoding: chunked\r\n")
    with connect(port) as connection:
        connection.sendall(head + start.encode())
        sent = 0
        try:
            while sent < 10_000_000:
                connection.sendall(b"x-trailer: " + b"y" * 1000 + b"\r\n")
                sent += 1013
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 5_000_000


def test_a_chunked_body_of_common_sizes_arrives(port: int) -> None:
    body = json.dumps({"url": "https://example.org", "name": "chunks", "metadata": {"x": "y" * 50_000}}).encode()
    parts = [body[at : at + 500] for at in range(0, len(body), 500)]
    framed = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    head = request("POST", "/api/v1/sources", BEARER, JSON, "transfer-encoding: chunked\r\n", CLOSE)
    assert status_of(answer_to(port, head, framed)) == 201


def test_pipelined_requests_are_answered_in_order(port: int) -> None:
    with connect(port) as connection:
        connection.sendall(request("GET", "/healthz") + request("HEAD", "/healthz") + request("GET", "/nothing", BEARER, CLOSE))
        answer = read_all(connection)
    assert [part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"404"]


@pytest.mark.parametrize(
    "headers",
    [
        [f"x-{number}: {'y' * 1000}\r\n" for number in range(40)],
        [f"x-large: {'y' * 40_000}\r\n"],
        [f"x-{number}: y\r\n" for number in range(6000)],
    ],
)
def test_headers_that_are_too_large_are_refused(port: int, headers: list[str]) -> None:
    with connect(port) as connection:
        try:
            connection.sendall(request("GET", "/healthz", *headers))
            answer = connection.recv(65536)
        except (BrokenPipeError, ConnectionResetError):
            return
    assert status_of(answer) in {400, 431}


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8060", "127.0.0.1", "[::1]:80", "LOCALHOST", "a.example.org", "localhost."]
)
def test_names_of_ours_are_answered(port: int, host: str) -> None:
    assert status_of(answer_to(port, request("GET", "/api/v1/lanes", BEARER, CLOSE, host=host))) == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "example.org",
        "evilexample.org",
        "localhost@evil.example",
        "localhost:80@evil",
        "127.0.0.1.evil.example",
        "",
        "*.example.org",
        "localhost:x",
        "a b",
        "localhost/",
        "[::1",
        "2130706433",
    ],
)
def test_names_of_others_are_not(port: int, host: str) -> None:
    answer = answer_to(port, request("GET", "/api/v1/lanes", BEARER, CLOSE, host=host))
    assert status_of(answer) in {400, 421}
    assert status_of(answer_to(port, request("GET", "/login", CLOSE, host=host))) in {400, 421}


def test_a_missing_or_double_host_is_refused(port: int) -> None:
    assert status_of(answer_to(port, f"GET /api/v1/lanes HTTP/1.0\r\n{BEARER}\r\n".encode())) == 421
    assert status_of(answer_to(port, request("GET", "/api/v1/lanes", "host: evil.example\r\n", BEARER, CLOSE))) == 400


@pytest.mark.parametrize(
    "raw",
    [
        b"GET /healthz\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET http://[/ HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n",
        b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: a\x00b\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ],
)
def test_garbage_is_refused_and_the_server_goes_on(port: int, raw: bytes) -> None:
    answer = answer_to(port, raw)
    assert answer == b"" or (status_of(answer) in range(400, 500) and json.loads(answer.partition(b"\r\n\r\n")[2])["error"])
    assert status_of(answer_to(port, request("GET", "/healthz", CLOSE))) == 200


CHUNK = b"5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "headers",
    [
        "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        "transfer-encoding: identity\r\ntransfer-encoding: chunked\r\n",
        "transfer-encoding: chunked, chunked\r\n",
        "transfer-encoding: gzip, chunked\r\n",
        "transfer-encoding: chunked, identity\r\n",
        "transfer-encoding: xchunked\r\n",
        "transfer-encoding: identity\r\n",
        "transfer-encoding:\r\n",
        "transfer-encoding: \x0bchunked\r\n",
        "transfer-encoding : chunked\r\n",
        "transfer-encoding:\r\n chunked\r\n",
        "transfer-encoding: chunked\r\n , identity\r\n",
        "x-folded: one\r\n two\r\ntransfer-encoding: chunked\r\n",
        "x-folded: one\r\n\ttwo\r\ncontent-length: 20\r\n",
        "transfer-encoding: chunked\r\ncontent-length: 20\r\n",
        "content-length: 20\r\ntransfer-encoding: chunked\r\n",
        "content-length: 20\r\ncontent-length: 20\r\n",
        "content-length: 20, 20\r\n",
        "content-length: +20\r\n",
    ],
)
def test_a_body_whose_length_can_be_read_in_two_ways_is_refused_and_the_connection_closed(port: int, headers: str) -> None:
    head = request("POST", "/api/v1/sources", BEARER, JSON, headers)
    answer = answer_to(port, head + CHUNK + request("GET", "/healthz"))
    assert (answer.count(b"HTTP/1.1 "), status_of(answer), b"connection: close" in answer.lower()) == (1, 400, True)


def test_chunks_are_not_for_the_old_version(port: int) -> None:
    head = f"POST /login HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n{CLOSE}\r\n".encode()
    answer = answer_to(port, head + CHUNK)
    assert status_of(answer) == 400


def test_probes_answer_under_any_name(port: int) -> None:
    for path in ("/healthz", "/readyz"):
        assert status_of(answer_to(port, request("GET", path, CLOSE, host="10.1.2.3"))) == 200


def test_every_answer_has_its_headers(port: int) -> None:
    with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
        for path in ("/healthz", "/login", "/nothing", "/api/v1/lanes", "/assets/windlass.css"):
            headers = client.get(path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert headers["referrer-policy"] == "same-origin"
            assert headers["x-request-id"]
            assert "server" not in headers
            assert ("no-store" in headers["cache-control"]) == (not path.startswith("/assets"))


def test_a_head_request_has_no_body(port: int) -> None:
    answer = answer_to(port, request("HEAD", "/healthz", CLOSE))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (status_of(answer), body, b"content-length: 15" in head) == (200, b"", True)


def test_a_server_stops_while_clients_are_connected(tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    migrate_sqlite(path)
    started = threading.Event()
    with ExitStack() as stack:
        with listening(Windlass(f"sqlite:///{path}", admin_token="static-admin-token", grace="1s")) as port:
            for _ in range(5):
                stack.enter_context(connect(port))
            busy = stack.enter_context(connect(port))
            busy.sendall(request("GET", "/healthz"))
            assert busy.recv(65536)
            started.set()
            before = time.monotonic()
        assert time.monotonic() - before < 8

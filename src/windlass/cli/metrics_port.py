"""What Prometheus reads from a worker that has no server beside it."""

from __future__ import annotations

import hashlib
import hmac
import logging
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import TCPServer
from typing import Any

from windlass.app import Windlass
from windlass.core.blocking import run
from windlass.errors import ConfigError, StoreError

log = logging.getLogger("windlass.metrics")

_PATIENCE_S = 5
_TEXT = "text/plain; charset=utf-8"
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class MetricsServer(HTTPServer):
    """Answers `GET /metrics`, one request at a time; it reads the database only when it is asked."""

    def __init__(self, app: Windlass, host: str, port: int) -> None:
        """Take the port; raises OSError."""
        token = app.settings.metrics_token
        self._app = app
        self._digest = None if token is None else hashlib.sha256(token.encode()).digest()
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _MetricsHandler)

    def server_bind(self) -> None:
        """Take the port without asking for the name of this machine, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def allows(self, authorization: str | None, host: str | None) -> bool:
        """Whether a request may read: it has the token or, where the settings have none, comes to this machine's own name."""
        if self._digest is None:
            # A page in a browser may send requests here under a name of its own.
            return (host or "").rpartition(":")[0].strip("[]") in _LOOPBACK
        scheme, _, given = (authorization or "").partition(" ")
        digest = hashlib.sha256(given.strip().encode(errors="surrogateescape")).digest()
        return scheme.lower() == "bearer" and hmac.compare_digest(digest, self._digest)

    def read(self, accept: str) -> tuple[str, bytes]:
        """Read the metrics; raises StoreError."""
        from windlass.prometheus import expose  # noqa: PLC0415 - an optional dependency

        return run(expose(run(self._app.blocking_store()), accept))

    def handle_error(self, _request: Any, client_address: Any) -> None:
        """Log a request that broke off, and go on."""
        log.debug("a request from %s broke off: %s", client_address, sys.exception())


class _MetricsHandler(BaseHTTPRequestHandler):
    server: MetricsServer
    # A client that sends nothing holds up the next one for no longer than this.
    timeout = _PATIENCE_S
    server_version = "windlass"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the metrics, or why not."""
        if self.path.partition("?")[0] != "/metrics":
            self._say(HTTPStatus.NOT_FOUND, _TEXT, b"there is only /metrics here\n")
        elif not self.server.allows(self.headers.get("authorization"), self.headers.get("host")):
            self._say(HTTPStatus.UNAUTHORIZED, _TEXT, b"send WINDLASS_METRICS_TOKEN as Authorization: Bearer\n")
        else:
            try:
                kind, body = self.server.read(self.headers.get("accept", ""))
            except StoreError as error:
                log.warning("metrics could not be read: %s", error)
                self._say(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, b"the database does not answer\n")
            else:
                self._say(HTTPStatus.OK, kind, body)

    def _say(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("cache-control", "no-store")
        self.send_header("x-content-type-options", "nosniff")
        if status is HTTPStatus.UNAUTHORIZED:
            self.send_header("www-authenticate", 'Bearer realm="windlass"')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name in the class above
        """Log requests for debugging, and not to the terminal."""
        log.debug("%s: %s", self.address_string(), format % args)


@contextmanager
def exposed(app: Windlass, host: str, port: int | None) -> Iterator[str | None]:
    """Answer on a thread for as long as the block lasts, and yield the address; without a port, do nothing.

    Raises ConfigError when the port is taken, or when others could read it without a token.
    """
    if port is None:
        yield None
        return
    try:
        import prometheus_client  # noqa: F401, PLC0415 - an optional dependency
    except ModuleNotFoundError as error:
        raise ConfigError(f"--metrics-port needs {error.name}; install windlass[server]") from error
    if app.settings.metrics_token is None and host not in _LOOPBACK:
        raise ConfigError(f"--metrics-host {host}: others could read the metrics; set WINDLASS_METRICS_TOKEN, or use 127.0.0.1")
    try:
        server = MetricsServer(app, host, port)
    except OSError as error:
        raise ConfigError(f"--metrics-port {port}: cannot listen on {host}: {error.strerror}") from error
    thread = threading.Thread(target=server.serve_forever, name="windlass-metrics", daemon=True)
    thread.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(_PATIENCE_S)

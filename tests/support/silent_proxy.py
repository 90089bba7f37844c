"""A proxy before PostgreSQL that can go silent: it acknowledges what it is sent, and passes nothing on."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from psycopg.conninfo import conninfo_to_dict

from tests.support.postgres_server import url_of


class SilentProxy:
    """Passes bytes on from a thread of its own; `silence` and `heal` may be called from any thread."""

    def __init__(self, dsn: str) -> None:
        """Stand before the server of this DSN."""
        self._target = conninfo_to_dict(dsn)
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        self._generation = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._live, name="silent-proxy", daemon=True)
        self.connections = 0
        """How many have been opened so far."""
        self.swallowed = 0
        """How many bytes did not get through since the silence began."""

    @property
    def url(self) -> str:
        """The same database through the proxy."""
        port = self._socket.getsockname()[1]
        return url_of({**self._target, "host": "127.0.0.1", "port": str(port), "sslmode": "disable", "gssencmode": "disable"})

    def silence(self) -> None:
        """Swallow everything from now on, without a word."""
        self._call(self._silence)

    def heal(self) -> None:
        """Serve new connections again; old ones stay silent for ever, as after the restart of a router."""
        self._call(self._heal)

    def _silence(self) -> None:
        self.swallowed = 0
        self._passing.clear()

    def _heal(self) -> None:
        self._generation += 1
        self._passing.set()

    def _call(self, action: Callable[[], None]) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(action)
        self._loop.call_soon_threadsafe(done.set)
        assert done.wait(5)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _live(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._socket))
        try:
            self._loop.run_forever()
        finally:
            server.close()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            for writer in self._writers:
                writer.transport.abort()
            # The transports close their sockets at the loop's next turns.
            for _ in range(3):
                self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        generation = self._generation
        try:
            if not self._passing.is_set():
                await self._swallow(reader)
                return
            there, back = await self._connect()
            self._writers.add(back)
            try:
                ways = [self._pass(reader, back, generation), self._pass(there, writer, generation)]
                tasks = [asyncio.ensure_future(way) for way in ways]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
            finally:
                back.close()
        # Cancelled at the end: the streams would log it as an error.
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._target["host"]), int(self._target.get("port") or 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, generation: int) -> None:
        while data := await reader.read(65536):
            if not self._passing.is_set() or generation != self._generation:
                self.swallowed += len(data)
                await self._swallow(reader)
                return
            writer.write(data)
            with suppress(ConnectionError):
                await writer.drain()
        if not self._passing.is_set() or generation != self._generation:
            # That one side has left is not passed on either.
            await asyncio.Event().wait()

    async def _swallow(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65536):
            self.swallowed += len(data)


@contextmanager
def silent_proxy(dsn: str) -> Iterator[SilentProxy]:
    """Run a proxy for a while."""
    proxy = SilentProxy(dsn)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()

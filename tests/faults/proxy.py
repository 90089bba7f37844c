"""A TCP proxy before PostgreSQL that can hold, delay, lose or cut what passes."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

_RESET = struct.pack("ii", 1, 0)
_CHUNK = 1 << 16


class Link:
    """One client's connection through the proxy."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self.ends = (client, server)
        self.is_lost = False
        """Whether what is sent vanishes, both ways, without a word."""

    def reset(self) -> None:
        """End both sides with a reset."""
        for end in self.ends:
            with suppress(OSError):
                end.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            end.transport.abort()


class Proxy:
    """Leads one class of clients to the server's socket; its methods are called from any thread."""

    def __init__(self, name: str, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self.name = name
        self.port = 0
        self._path = path
        self._loop = loop
        self._links: set[Link] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._delay_s = 0.0
        self._refuses = False
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def hold(self) -> None:
        """Let nothing through, and close nothing."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def release(self) -> None:
        """Deliver what was held, as TCP does after a partition."""
        self._loop.call_soon_threadsafe(self._open.set)

    def lose(self) -> None:
        """Make black holes of the connections there are; new ones are not concerned."""
        self._loop.call_soon_threadsafe(self._lose)

    def _lose(self) -> None:
        for link in self._links:
            link.is_lost = True

    def delay(self, seconds: float) -> None:
        """Hand everything on so much later."""
        self._delay_s = seconds

    def refuse(self, *, refuses: bool) -> None:
        """Reset new connections at once, or no longer."""
        self._refuses = refuses

    def cut(self, *, only_lost: bool = False) -> None:
        """Reset the connections there are."""
        self._loop.call_soon_threadsafe(self._cut, only_lost)

    def _cut(self, only_lost: bool) -> None:  # noqa: FBT001 - call_soon takes no keywords
        for link in [*self._links]:
            if link.is_lost or not only_lost:
                link.reset()

    def heal(self) -> None:
        """Be a good wire again."""
        self._delay_s = 0.0
        self._refuses = False
        self.release()
        self.cut(only_lost=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            await self._lead(reader, writer)
        finally:
            writer.transport.abort()
            self._serving.discard(task)

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            if self._refuses:
                raise ConnectionResetError
            there, here = await asyncio.open_unix_connection(self._path)
        except OSError:
            return
        link = Link(writer, here)
        self._links.add(link)
        try:
            await asyncio.gather(self._pump(link, reader, here), self._pump(link, there, writer))
        except OSError:
            pass
        finally:
            self._links.discard(link)
            for end in link.ends:
                end.transport.abort()

    async def _pump(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            if self._delay_s:
                await asyncio.sleep(self._delay_s)
            await self._open.wait()
            if not link.is_lost:
                writer.write(data)
                await writer.drain()
        if not link.is_lost:
            # The other direction ends with this one: a database client never closes just one.
            raise ConnectionResetError


class Proxies:
    """The proxies of a run, on an event loop in a thread of their own."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._proxies: list[Proxy] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def open(self, name: str) -> Proxy:
        """Start a proxy for a class of clients."""
        proxy = Proxy(name, self._path, self._loop)
        self._call(proxy.start())
        self._proxies.append(proxy)
        return proxy

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        """End all connections."""
        for proxy in self._proxies:
            self._call(proxy.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

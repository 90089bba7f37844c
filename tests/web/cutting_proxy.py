"""A TCP proxy that hands requests on and cuts some connections before the answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


@asynccontextmanager
async def cutting_proxy(port: int, is_cut: Callable[[], bool]) -> AsyncIterator[int]:
    """Stand before `port` and give the port to ask; each answer that `is_cut` says so of never arrives."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await exchange(reader, writer)
        finally:
            writer.close()
            serving.discard(task)

    async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            request = await _message(reader)
            there, here = await asyncio.open_connection("127.0.0.1", port)
            try:
                here.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
                # The whole answer is awaited either way: what the request did is then done.
                answer = await there.read(-1)
            finally:
                here.close()
            if not is_cut():
                writer.write(answer)
                await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        # Who was broken off in a long poll still waits for its answer.
        for task in [*serving]:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return head + await reader.readexactly(int(line.partition(b":")[2]))
    return head

"""A way to a server that breaks now and then, after the request went through and before its answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random


class Cutter:
    """Passes bytes on; answers are lost at random, with their connections."""

    def __init__(self, port: int, rng: Random, chance: float) -> None:
        self._port = port
        self._rng = rng
        self._chance = chance
        self.cuts = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        ways = {asyncio.ensure_future(_pass(reader, back)), asyncio.ensure_future(self._answer(there, writer))}
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        for way in ways:
            way.cancel()
        for end in (writer, back):
            end.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self._rng.random() < self._chance:
                self.cuts += 1
                return
            writer.write(data)
            await writer.drain()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def cutting(port: int, rng: Random, chance: float) -> AsyncIterator[tuple[int, Cutter]]:
    """Stand between a client and a server; gives the port to use instead."""
    cutter = Cutter(port, rng, chance)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], cutter

"""Sends requests to a server and reads the answers, for blocking code and for asyncio."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, TypeVar

import httpx2

from windlass.http_client.answers import error_of
from windlass.http_client.ask import Ask
from windlass.http_client.courier import Courier, read_json, unavailable

T = TypeVar("T")
_SILENCE_S = 45.0
"""Three times as long as a server ever sends nothing."""


class Transport(ABC):
    """Sends requests; the coroutines of a blocking transport never suspend."""

    is_blocking: ClassVar[bool]

    def __init__(self, courier: Courier) -> None:
        """Send what `courier` makes of requests."""
        self._courier = courier

    async def send(self, ask: Ask[T]) -> T:
        """Send a request and read its answer."""
        tries = 0
        while True:
            try:
                response = await self._request(self._courier.request(ask))
            except httpx2.TransportError as error:
                tries += 1
                await self.sleep(self._courier.pause_s(ask, error, tries))
            else:
                return self._courier.read(ask, response)

    async def stream(self, ask: Ask[str], *, by_line: bool, accept: str | None = None) -> AsyncGenerator[str, None]:
        """Read an answer as it comes; raises ServerUnavailable when it breaks off."""
        request = self._courier.request(ask)
        if accept is not None:
            request["headers"]["accept"] = accept
        request["timeout"] = httpx2.Timeout(self._courier.timeout, read=_SILENCE_S)
        try:
            async with self._open(request) as response:
                if not response.is_success:
                    await self._load(response)
                    raise error_of(response.status_code, read_json(response), response.headers)
                async for piece in self._pieces(response, by_line=by_line):
                    yield piece
        except httpx2.TransportError as error:
            raise unavailable(error, f"{ask.method} {ask.path}") from error

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connections."""

    @abstractmethod
    async def _request(self, request: dict[str, Any]) -> httpx2.Response: ...

    @abstractmethod
    def _open(self, request: dict[str, Any]) -> AbstractAsyncContextManager[httpx2.Response]: ...

    @abstractmethod
    async def _load(self, response: httpx2.Response) -> None: ...

    @abstractmethod
    def _pieces(self, response: httpx2.Response, *, by_line: bool) -> AsyncIterator[str]: ...


class BlockingTransport(Transport):
    """Holds up its thread while it waits; safe to share between threads."""

    is_blocking = True

    def __init__(self, courier: Courier, transport: httpx2.BaseTransport | None) -> None:
        """Connect at the first request."""
        super().__init__(courier)
        self._http = httpx2.Client(headers=courier.headers, timeout=courier.timeout, transport=transport)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)  # noqa: ASYNC251 - there is no event loop to hold up

    async def close(self) -> None:
        """Close the connections."""
        self._http.close()

    async def _request(self, request: dict[str, Any]) -> httpx2.Response:
        return self._http.request(**request)

    @asynccontextmanager
    async def _open(self, request: dict[str, Any]) -> AsyncIterator[httpx2.Response]:
        with self._http.stream(**request) as response:
            yield response

    async def _load(self, response: httpx2.Response) -> None:
        response.read()

    async def _pieces(self, response: httpx2.Response, *, by_line: bool) -> AsyncIterator[str]:
        for piece in response.iter_lines() if by_line else response.iter_text():
            yield piece


class AwaitedTransport(Transport):
    """Belongs to one event loop."""

    is_blocking = False

    def __init__(self, courier: Courier, transport: httpx2.AsyncBaseTransport | None) -> None:
        """Connect at the first request."""
        super().__init__(courier)
        self._http = httpx2.AsyncClient(headers=courier.headers, timeout=courier.timeout, transport=transport)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _request(self, request: dict[str, Any]) -> httpx2.Response:
        return await self._http.request(**request)

    @asynccontextmanager
    async def _open(self, request: dict[str, Any]) -> AsyncIterator[httpx2.Response]:
        async with self._http.stream(**request) as response:
            yield response

    async def _load(self, response: httpx2.Response) -> None:
        await response.aread()

    async def _pieces(self, response: httpx2.Response, *, by_line: bool) -> AsyncIterator[str]:
        async for piece in response.aiter_lines() if by_line else response.aiter_text():
            yield piece

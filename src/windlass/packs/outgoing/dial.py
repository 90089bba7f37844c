"""Opens connections to addresses that were looked at before, and to nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

import httpcore2

from windlass.packs.outgoing.addresses import Address, refusal
from windlass.packs.outgoing.errors import AddressRefused, Unreachable
from windlass.packs.outgoing.url import WebUrl

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Finds the addresses of a host name, for a port."""

_LOOKUPS = 16
_TRIED = 4


class Dns:
    """Asks the system for addresses, in threads of its own: a name server that hangs must not stop other work."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_LOOKUPS, thread_name_prefix="windlass-lookup")

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses in the order to be tried."""
        ask = asyncio.get_running_loop().run_in_executor(self._threads, _ask, host, port)
        return [str(found[4][0]) for found in await ask]

    def close(self) -> None:
        """Let the threads end by themselves."""
        self._threads.shutdown(wait=False, cancel_futures=True)


def _ask(host: str, port: int) -> list[tuple[object, object, int, str, tuple[object, ...]]]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


async def look_up(url: WebUrl, resolve: Resolve, *, allow_private: bool, timeout_s: float) -> list[Address]:
    """Find the addresses of a host once; one bad address among them refuses all of them."""
    addresses = [url.address] if url.address is not None else await _resolved(url, resolve, timeout_s)
    for address in addresses:
        what = refusal(address, allow_private=allow_private)
        if what is not None:
            raise AddressRefused(f"{url.origin}: {address} is {what}; WINDLASS_ALLOW_PRIVATE_ADDRESSES opens private networks")
    return addresses


async def _resolved(url: WebUrl, resolve: Resolve, timeout_s: float) -> list[Address]:
    try:
        async with asyncio.timeout(timeout_s):
            found = await resolve(url.host, url.port)
    except TimeoutError:
        raise Unreachable(f"{url.origin}: its name was not found within {timeout_s:g} s") from None
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{url.origin}: its name was not found: {error}") from None
    if not found:
        raise Unreachable(f"{url.origin}: its name has no address")
    return [ip_address(text) for text in found]


class Dial(httpcore2.AsyncNetworkBackend):
    """The network as one request sees it: only these addresses."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        self._addresses = addresses[:_TRIED]
        self._network = httpcore2.AnyIOBackend()
        self._opened: list[httpcore2.AsyncNetworkStream] = []

    async def connect_tcp(  # noqa: PLR0917 - the signature is httpcore's
        self,
        host: str,  # noqa: ARG002 - a name is never looked up again: its addresses may have changed since they were checked
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature is httpcore's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first address that answers, each with its share of the time."""
        share = None if timeout is None else timeout / len(self._addresses)
        for last, address in enumerate(self._addresses, 1 - len(self._addresses)):
            try:
                stream = await self._network.connect_tcp(str(address), port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                if last == 0:
                    raise
            else:
                self._opened.append(stream)
                return stream
        raise httpcore2.ConnectError("there is no address")

    async def aclose(self) -> None:
        """Close what is still open: a handshake that was cut off leaves its connection behind."""
        for stream in self._opened:
            await stream.aclose()

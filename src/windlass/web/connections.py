"""The open connections of a server: how many there may be, and which one makes room for another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Protocol

UNKNOWN = "unknown"
CONNECTION = "windlass.connection"
"""Where a request's scope has its connection."""


class Connection(Protocol):
    """What a server needs of a connection."""

    @property
    def address(self) -> str:
        """Where it comes from."""

    @property
    def network(self) -> str:
        """Where it comes from, as far as one client may choose its address."""

    def drop(self) -> None:
        """End it at once, whatever is under way on it."""


Queue = dict[str, dict[Connection, None]]


class Connections:
    """Counts connections, and ends the one that has waited longest where there is one too many.

    A connection waits while nothing can be done for it: before its first request, while a request is not complete, while its
    client does not read, and between requests. Connections whose client has a valid credential go last.
    """

    def __init__(self, most: int, most_of_address: int, proxies: Iterable[str] = ()) -> None:
        """Allow `most` in all and `most_of_address` from one address, unless it is loopback or one of the `proxies`."""
        self._most = most
        self._most_of_address = most_of_address
        self._are_all_proxies = "*" in proxies
        self._proxies = tuple(_networks(proxies))
        self._open: Counter[str] = Counter()
        self._strangers: Queue = {}
        self._known: Queue = {}
        self._vouched: set[Connection] = set()

    def opened(self, connection: Connection) -> None:
        """Count a new connection, which waits for its first request; one too many ends another, or itself."""
        network = connection.network
        self._open[network] += 1
        self.waits(connection)
        if self._open[network] > self._most_of_address and not self._is_shared(connection.address):
            self._drop_one([network])
        elif self._open.total() > self._most:
            self._drop_one(self._open)

    def closed(self, connection: Connection) -> None:
        """Remove a connection."""
        network = connection.network
        self.works(connection)
        self._vouched.discard(connection)
        self._open[network] -= 1
        if not self._open[network]:
            del self._open[network]

    def waits(self, connection: Connection) -> None:
        """Let a connection be ended for another, after those that wait already."""
        queue = self._known if connection in self._vouched else self._strangers
        queue.setdefault(connection.network, {})[connection] = None

    def works(self, connection: Connection) -> None:
        """Keep a connection: there is something to do for it."""
        network = connection.network
        for queue in (self._strangers, self._known):
            waiting = queue.get(network)
            if waiting is not None and waiting.pop(connection, self) is None and not waiting:
                del queue[network]

    def vouch(self, connection: Connection) -> None:
        """Count a connection as one whose client has a valid credential."""
        if connection in self._vouched:
            return
        self._vouched.add(connection)
        if connection in self._strangers.get(connection.network, ()):
            self.works(connection)
            self.waits(connection)

    def make_room(self, count: int) -> None:
        """End as many waiting connections, or all that there are."""
        for _ in range(count):
            self._drop_one(self._open)

    def _drop_one(self, networks: Iterable[str]) -> None:
        """End the connection that has waited longest, of the address that has most."""
        for queue in (self._strangers, self._known):
            waiting = [network for network in networks if network in queue]
            if waiting:
                crowd = max(waiting, key=lambda network: self._open[network])
                connection = next(iter(queue[crowd]))
                # It is reported closed later, and until then it must not be picked again.
                self.works(connection)
                connection.drop()
                return

    def _is_shared(self, address: str) -> bool:
        """Whether many clients may come from this address."""
        if self._are_all_proxies or address == UNKNOWN:
            return True
        try:
            parsed = ip_address(address.partition("%")[0])
        except ValueError:
            return True
        return parsed.is_loopback or any(parsed in network for network in self._proxies)


def _networks(names: Iterable[str]) -> Iterable[IPv4Network | IPv6Network]:
    for name in names:
        try:
            yield ip_network(name, strict=False)
        except ValueError:
            continue

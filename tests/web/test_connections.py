"""Which connection makes room for another."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from windlass.web.connections import Connections
from windlass.web.rate_limit import network_of


@dataclass(eq=False)
class Client:
    """A connection that only notes its end."""

    address: str = "198.51.100.1"
    is_dropped: bool = field(default=False, init=False)

    @property
    def network(self) -> str:
        return network_of(self.address)

    def drop(self) -> None:
        self.is_dropped = True


def opened(connections: Connections, *addresses: str) -> list[Client]:
    clients = [Client(address) for address in addresses]
    for client in clients:
        connections.opened(client)
    return clients


def test_one_too_many_ends_the_one_that_waited_longest() -> None:
    connections = Connections(2, 9)
    first, second, third = opened(connections, "198.51.100.1", "198.51.100.2", "198.51.100.3")
    assert [first.is_dropped, second.is_dropped, third.is_dropped] == [True, False, False]


def test_the_address_with_most_connections_makes_room() -> None:
    connections = Connections(3, 9)
    lone, *crowd = opened(connections, "198.51.100.1", *["198.51.100.2"] * 3)
    assert [lone.is_dropped, *(one.is_dropped for one in crowd)] == [False, True, False, False]


def test_who_showed_a_credential_goes_last() -> None:
    connections = Connections(2, 9)
    known, stranger = opened(connections, "198.51.100.1", "198.51.100.1")
    connections.vouch(known)
    opened(connections, "198.51.100.1")
    assert (known.is_dropped, stranger.is_dropped) == (False, True)


def test_who_is_being_answered_stays() -> None:
    connections = Connections(1, 9)
    [busy] = opened(connections, "198.51.100.1")
    connections.works(busy)
    [other] = opened(connections, "198.51.100.2")
    assert (busy.is_dropped, other.is_dropped) == (False, True)
    connections.closed(other)
    connections.waits(busy)
    opened(connections, "198.51.100.3")
    assert busy.is_dropped


@pytest.mark.parametrize(
    ("address", "is_bounded"),
    [
        ("198.51.100.1", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("::1", False),
        ("10.1.2.3", False),
        ("203.0.113.9", False),
        ("unknown", False),
    ],
)
def test_an_address_has_its_share_unless_many_come_from_there(address: str, *, is_bounded: bool) -> None:
    connections = Connections(100, 2, ("10.0.0.0/8", "203.0.113.9", "proxy.example"))
    assert opened(connections, *[address] * 3)[0].is_dropped is is_bounded


def test_an_ipv6_customer_has_one_share() -> None:
    first, *_ = opened(Connections(100, 2), "2001:db8::1", "2001:db8::2", "2001:db8::3")
    assert first.is_dropped


def test_every_address_is_a_proxy_where_all_are_trusted() -> None:
    assert not opened(Connections(100, 2, ("*",)), *["198.51.100.1"] * 3)[0].is_dropped


def test_nothing_is_kept_of_a_connection_that_is_gone() -> None:
    connections = Connections(100, 100)
    for client in opened(connections, *["198.51.100.1"] * 3, "198.51.100.2"):
        connections.vouch(client)
        connections.closed(client)
    assert not any([connections._open, connections._strangers, connections._known, connections._vouched])

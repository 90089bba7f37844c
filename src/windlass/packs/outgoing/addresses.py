"""Which network addresses a pack may reach.

Written out from the IANA registries of special addresses: what `ipaddress` calls private differs between Python versions.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

_METADATA = "a metadata service"
_NEVER: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/8", "unspecified"),
    ("100.100.100.200/32", _METADATA),
    ("168.63.129.16/32", _METADATA),
    ("169.254.0.0/16", "link-local, where metadata services are"),
    ("192.0.0.0/24", "reserved"),
    ("192.0.2.0/24", "for documentation"),
    ("192.88.99.0/24", "a relay of 6to4"),
    ("198.51.100.0/24", "for documentation"),
    ("203.0.113.0/24", "for documentation"),
    ("224.0.0.0/4", "multicast"),
    ("240.0.0.0/4", "reserved"),
    ("::/128", "unspecified"),
    ("fd00:ec2::/32", _METADATA),
    ("fd20:ce::254/128", _METADATA),
)
_PRIVATE: tuple[tuple[str, str], ...] = (
    ("10.0.0.0/8", "private"),
    ("100.64.0.0/10", "shared by the customers of a network"),
    ("127.0.0.0/8", "loopback"),
    ("172.16.0.0/12", "private"),
    ("192.168.0.0/16", "private"),
    ("198.18.0.0/15", "for benchmarks"),
    ("::1/128", "loopback"),
    ("fc00::/7", "private"),
)
# Of IPv6 only this part is given out; outside of it are link-local, multicast, IPv4-mapped and all other special addresses.
_GIVEN_OUT = IPv6Network("2000::/3")
_SPECIAL: tuple[tuple[str, str], ...] = (
    ("2001::/23", "a tunnel or reserved"),
    ("2001:db8::/32", "for documentation"),
    ("2002::/16", "a tunnel to an IPv4 address"),
    ("3fff::/20", "for documentation"),
)
_TRANSLATED = IPv6Network("64:ff9b::/96")


def _networks(table: tuple[tuple[str, str], ...]) -> tuple[tuple[IPv4Network | IPv6Network, str], ...]:
    return tuple((IPv6Network(text) if ":" in text else IPv4Network(text), what) for text, what in table)


_NEVER_REACHED = _networks(_NEVER + _SPECIAL)
_REACHED_IF_ALLOWED = _networks(_PRIVATE)


def refusal(address: Address, *, allow_private: bool) -> str | None:
    """Return what is wrong with an address; None when it may be reached.

    `allow_private` opens loopback and private networks, and never those where metadata services live.
    """
    if isinstance(address, IPv6Address) and address in _TRANSLATED:
        # Networks without IPv4 reach its addresses this way, so it is as good as the address inside.
        return refusal(IPv4Address(int(address) & 0xFFFFFFFF), allow_private=allow_private)
    found = _what(address, _NEVER_REACHED)
    if found is not None:
        return found
    private = _what(address, _REACHED_IF_ALLOWED)
    if private is not None:
        return None if allow_private else private
    return "special" if isinstance(address, IPv6Address) and address not in _GIVEN_OUT else None


def _what(address: Address, networks: tuple[tuple[IPv4Network | IPv6Network, str], ...]) -> str | None:
    return next((what for network, what in networks if address.version == network.version and address in network), None)

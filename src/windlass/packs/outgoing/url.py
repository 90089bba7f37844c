"""An address on the web, read strictly: what two readers could understand differently is refused."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import quote, urljoin, urlsplit

import idna

from windlass.errors import shown
from windlass.packs.outgoing.addresses import Address
from windlass.packs.outgoing.errors import UrlRefused

_MAX_CHARS = 8_192
_PORTS = {"http": 80, "https": 443}
_AUTHORITY = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[^\[\]:@%/?#\s]+))(?::(?P<port>[0-9]{1,5}))?")
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_KEPT = "%/:=&?~+!$,;'@()*"
# Other protocols listen there, and some would take a request for their own; the list that browsers refuse (Fetch standard).
_CLOSED = """
    1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143
    161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659
    4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080
"""
_CLOSED_PORTS = frozenset(map(int, _CLOSED.split()))


class WebUrl(NamedTuple):
    """Where a request goes, in one form only."""

    scheme: str
    host: str
    """A name in lower case and ASCII, or an address without brackets."""
    port: int
    target: str
    """Path and query."""
    address: Address | None
    """The host, when it is an address."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """What errors show: paths and queries may hold secrets."""
        return f"{self.scheme}://{self.authority}"

    def __str__(self) -> str:
        return self.origin + self.target


def parse_url(text: str) -> WebUrl:
    """Read an address; raises UrlRefused."""
    if not isinstance(text, str) or len(text) > _MAX_CHARS:
        raise UrlRefused(f"url: must be a text of at most {_MAX_CHARS} characters")
    if "\\" in text or any(character <= " " or character == "\x7f" for character in text):
        raise _refused(text, "has a backslash, a space or a control character in it")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _refused(text, "has half a surrogate pair in it, which is no character")
    try:
        parts = urlsplit(text)
    except ValueError:
        raise _refused(text, "is not an address") from None
    scheme = parts.scheme.lower()
    if scheme not in _PORTS:
        raise _refused(text, "must begin with http:// or https://")
    if "@" in parts.netloc:
        raise _refused(text, "must not hold a user or password")
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None:
        raise _refused(text, "has no host, or a host or port that cannot be read")
    host, address = _host(text, authority)
    return WebUrl(scheme, host, _port(text, authority["port"], _PORTS[scheme]), _target(parts.path, parts.query), address)


def join_url(base: WebUrl, location: str) -> WebUrl:
    """Read the address that an answer of `base` redirects to."""
    # Servers forget to encode spaces; everything else is as strict as in an address that was given to us.
    location = location.strip(" ").replace(" ", "%20")
    if "\\" in location or any(character < " " for character in location):
        raise UrlRefused(f"{base.origin} redirects to what cannot be read")
    try:
        return parse_url(urljoin(str(base), location))
    except ValueError:
        raise UrlRefused(f"{base.origin} redirects to what cannot be read") from None


def _host(text: str, authority: re.Match[str]) -> tuple[str, Address | None]:
    if authority["six"] is not None:
        try:
            six = IPv6Address(authority["six"])
        except ValueError:
            raise _refused(text, "has an IPv6 address that cannot be read") from None
        return str(six), six
    name = _ascii(text, authority["name"]).removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):  # noqa: PLR2004 - the longest name DNS can carry
        raise _refused(text, "has a host name that cannot be")
    if not _NUMBER.fullmatch(labels[-1]):
        return name, None
    # 2130706433, 0x7f.1, 127.1 and 0177.0.0.1 are all 127.0.0.1 to some reader and something else to another.
    try:
        four = IPv4Address(name)
    except ValueError:
        raise _refused(text, "has a host that ends in a number; write an IPv4 address as four decimal numbers") from None
    return name, four


def _ascii(text: str, name: str) -> str:
    if name.isascii():
        return name.lower()
    try:
        return idna.encode(name, uts46=True, transitional=False).decode().lower()
    except (idna.IDNAError, UnicodeError):
        raise _refused(text, "has a host name that cannot be") from None


def _port(text: str, given: str | None, default: int) -> int:
    port = default if given is None else int(given)
    if not 1 <= port <= 65_535:  # noqa: PLR2004 - what a port can be
        raise _refused(text, "has a port that is none")
    if port in _CLOSED_PORTS:
        raise _refused(text, f"has port {port}, which belongs to another protocol")
    return port


def _target(path: str, query: str) -> str:
    target = quote(path or "/", safe=_KEPT)
    return f"{target}?{quote(query, safe=_KEPT)}" if query else target


def _refused(text: str, why: str) -> UrlRefused:
    # Passwords and keys are in front of an @ or behind a ?, and viewers may read errors.
    seen = "" if "@" in text else f" {shown(text.partition('?')[0])}"
    refused = UrlRefused(f"url{seen} {why}")
    refused.why = why
    return refused

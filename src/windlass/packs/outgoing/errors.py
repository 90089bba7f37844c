"""What can go wrong with a request that a pack sends.

WindlassError
└── OutgoingError
    ├── UrlRefused          not an http or https address we would send to: fails for good
    ├── AddressRefused      the name leads to a private, loopback, metadata or other special address: fails for good
    ├── BodyTooLarge        the answer is larger than the limit, as sent or unpacked: fails for good
    ├── TooManyRedirects    fails for good
    └── Unreachable         no address, no connection, no certificate, no answer in time or a broken one: worth a retry
"""

from __future__ import annotations

from windlass.errors import WindlassError


class OutgoingError(WindlassError):
    """A request of a pack was not answered."""


class UrlRefused(OutgoingError):
    """A pack may not send to this, or it is no address at all."""

    why: str | None = None
    """What is wrong with the address, for a text that shows it already."""


class AddressRefused(OutgoingError):
    """The host is, or its name leads to, an address that a pack may not reach."""


class BodyTooLarge(OutgoingError):
    """The answer is larger than the limit."""


class TooManyRedirects(OutgoingError):
    """The answer is always another address."""


class Unreachable(OutgoingError):
    """No answer came in time, or not in a way that can be read or trusted."""


FINAL: tuple[type[OutgoingError], ...] = (UrlRefused, AddressRefused, BodyTooLarge, TooManyRedirects)
"""The errors that no retry helps: list them in a task's `never_retry`."""

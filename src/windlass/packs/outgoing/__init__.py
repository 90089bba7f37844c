"""Outgoing requests: every request that a pack sends goes through `Outgoing`."""

from __future__ import annotations

from windlass.packs.outgoing.body import Wanted
from windlass.packs.outgoing.dial import Resolve
from windlass.packs.outgoing.errors import (
    FINAL,
    AddressRefused,
    BodyTooLarge,
    OutgoingError,
    TooManyRedirects,
    Unreachable,
    UrlRefused,
)
from windlass.packs.outgoing.sender import (
    LIMITS,
    USER_AGENT,
    Answer,
    Limits,
    Outgoing,
    check_headers,
    is_validator,
    outgoing,
)
from windlass.packs.outgoing.url import parse_url

__all__ = [
    "FINAL",
    "LIMITS",
    "USER_AGENT",
    "AddressRefused",
    "Answer",
    "BodyTooLarge",
    "Limits",
    "Outgoing",
    "OutgoingError",
    "Resolve",
    "TooManyRedirects",
    "Unreachable",
    "UrlRefused",
    "Wanted",
    "check_headers",
    "is_validator",
    "outgoing",
    "parse_url",
]

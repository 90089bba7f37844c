"""Signed requests: each is taken once."""

from __future__ import annotations

from datetime import timedelta

from windlass.core.checks import check_range, check_text, check_wait
from windlass.core.job import MAX_NAME
from windlass.store.calls.call import Call, single

_SECOND = timedelta(seconds=1)


def record(digest: str, lasts: timedelta) -> Call[bool]:
    """Note a signature; False when it was noted before."""
    check_text("digest", digest, MAX_NAME)
    check_wait("lasts", lasts, least=_SECOND)
    return single("add_signature", {"digest": digest, "lasts": lasts}, bool)


def prune(*, limit: int = 1000) -> Call[int]:
    """Delete signatures whose time is over; returns how many."""
    check_range("limit", limit, 1, 10_000)
    return single("prune_signatures", {"limit": limit}, len)

"""WebSub for subscribers: requests to a hub, and the checks of what it sends."""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from urllib.parse import urlencode

from windlass.core.feed import Feed

RENEW_WITHIN = timedelta(hours=24)
ASK_AGAIN = timedelta(days=1)
"""How long a hub that was asked is left to answer."""
DENIED_AGAIN = timedelta(days=7)
LEASE = timedelta(days=10)
"""What we ask for; the hub decides."""
LONGEST_LEASE = timedelta(days=365)
_METHODS = frozenset({"sha1", "sha256", "sha384", "sha512"})


def callback_path(feed: Feed) -> str:
    """Return the path of a feed's hub callback, which cannot be guessed."""
    return f"/websub/{feed.id}-{feed.websub_token}"


def feed_of(key: str) -> tuple[int, str] | None:
    """Read the last part of a callback's path: which feed, and the token that proves it."""
    number, _, token = key.partition("-")
    is_number = number.isascii() and number.isdecimal() and len(number) <= 18  # noqa: PLR2004 - what fits 64 bits
    return (int(number), token) if is_number and token else None


def is_known(feed: Feed, token: str) -> bool:
    """Whether a callback's token is the feed's own."""
    return feed.websub_token is not None and hmac.compare_digest(feed.websub_token.encode(), token.encode())


def is_signed(secret: str | None, header: str | None, body: bytes) -> bool:
    """Whether the hub that knows the secret has sent this body."""
    method, _, given = (header or "").partition("=")
    if not secret or method not in _METHODS:
        return False
    expected = hmac.new(secret.encode(), body, method).hexdigest()
    return hmac.compare_digest(expected.encode(), given.strip().lower().encode())


def wants_hub(feed: Feed, now: datetime) -> bool:
    """Whether it is time to ask a feed's hub: there is one, no lease lasts, and it was not asked just now."""
    if feed.websub_hub is None or feed.websub_topic is None or feed.next_fetch_at is None:
        return False
    if feed.websub_expires_at is not None and feed.websub_expires_at > now + RENEW_WITHIN:
        return False
    patience = DENIED_AGAIN if feed.websub_state == "denied" else ASK_AGAIN
    return feed.websub_asked_at is None or feed.websub_asked_at + patience <= now


def request_body(feed: Feed, public_url: str) -> bytes:
    """Write the form that asks a hub for a subscription, or for more of it."""
    fields = {
        "hub.mode": "subscribe",
        "hub.topic": feed.websub_topic,
        "hub.callback": public_url.rstrip("/") + callback_path(feed),
        "hub.secret": feed.websub_secret,
        "hub.lease_seconds": int(LEASE.total_seconds()),
    }
    return urlencode(fields).encode()

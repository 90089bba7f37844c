"""Signed requests of pull workers: a holder of the secret proves it without sending it, once for each request."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import NamedTuple

from windlass.core.job import MAX_NAME
from windlass.web.errors import Refusal

WINDOW = timedelta(seconds=300)
KEPT_FOR = 3 * WINDOW
"""A signature passes from one window before its timestamp to one after; the third is for servers whose clocks differ."""
EMPTY = hashlib.sha256(b"").hexdigest()
_TIMESTAMP = re.compile(rb"[0-9]{1,12}")
_NONCE = re.compile(rb"[A-Za-z0-9._~+/=-]{8,128}")
_DIGEST = re.compile(rb"[0-9a-fA-F]{64}")
_SIGNATURE = re.compile(rb"v1=([0-9a-fA-F]{64})")

Headers = Mapping[bytes, bytes]


class Signed(NamedTuple):
    """A request with a valid signature."""

    worker: str
    digest: str
    """The signature, as it is kept so that it cannot be used again."""


class Target(NamedTuple):
    """What is asked for, as it stands in the request's first line."""

    method: str
    path: bytes
    query: bytes

    @property
    def line(self) -> bytes:
        """The path with its query."""
        return self.path + b"?" + self.query if self.query else self.path


NOWHERE = Target("", b"", b"")


def sign(secret: str, target: Target, headers: Headers) -> bytes:
    """Make the signature of a request; a body is meant by its digest, so that it need not be read first."""
    content = headers.get(b"x-content-sha256", EMPTY.encode()).lower()
    parts = (
        b"v1",
        target.method.encode(),
        target.line,
        headers.get(b"x-timestamp", b""),
        headers.get(b"x-nonce", b""),
        headers.get(b"x-worker-id", b""),
        content,
    )
    return hmac.new(secret.encode(), b"\n".join(parts), hashlib.sha256).digest()


class Signing:
    """Checks signatures against one secret, or two while they change."""

    def __init__(self, secrets: Sequence[str]) -> None:
        """Take the secrets that are good."""
        self._secrets = tuple(secrets)

    @property
    def is_configured(self) -> bool:
        """Whether there is a secret to sign with."""
        return bool(self._secrets)

    def check(self, headers: Headers, target: Target) -> Signed:
        """Return the signer; raises a Refusal with 401 that names the wrong header."""
        timestamp, _ = _part(headers, b"x-timestamp", _TIMESTAMP, "must be the time in seconds since 1970")
        _part(headers, b"x-nonce", _NONCE, "must be 8 to 128 letters, digits or signs of base64")
        _part(headers, b"x-content-sha256", _DIGEST, "must be the SHA-256 of the body in hex", default=EMPTY.encode())
        _, found = _part(headers, b"x-signature", _SIGNATURE, "must be v1= and 64 hex digits")
        worker = headers.get(b"x-worker-id", b"").decode("latin-1")
        if not 1 <= len(worker) <= MAX_NAME or not worker.isprintable():
            raise _refusal(f"X-Worker-Id: must be 1 to {MAX_NAME} printable characters")
        # The signer's clock against ours: no other clock can be used before the signature is checked.
        if abs(int(timestamp) - time.time()) > WINDOW.total_seconds():  # noqa: TID251
            raise _refusal(f"X-Timestamp: is more than {WINDOW.total_seconds():.0f} seconds from this server's time")
        given = bytes.fromhex(found[1].decode())
        # Every secret is tried, so that the time it takes does not show which one was right.
        matches = [hmac.compare_digest(sign(secret, target, headers), given) for secret in self._secrets]
        if not any(matches):
            raise _refusal("X-Signature: does not fit the request")
        return Signed(worker, given.hex())


def check_body(headers: Headers, body: bytes) -> None:
    """Refuse a body that is not the one that was signed."""
    said = headers.get(b"x-content-sha256", EMPTY.encode()).decode("latin-1").lower()
    if not hmac.compare_digest(hashlib.sha256(body).hexdigest().encode(), said.encode()):
        raise _refusal("X-Content-SHA256: is not that of the body")


def _part(
    headers: Headers, name: bytes, form: re.Pattern[bytes], reason: str, *, default: bytes = b""
) -> tuple[bytes, re.Match[bytes]]:
    value = headers.get(name, default)
    found = form.fullmatch(value)
    if found is None:
        raise _refusal(f"{_shown(name)}: {reason}")
    return value, found


def _shown(name: bytes) -> str:
    return name.decode().title().replace("Sha256", "SHA256")


def _refusal(text: str) -> Refusal:
    return Refusal(401, text, {"www-authenticate": 'Signature realm="windlass"'})

"""Finds the principal of a request."""

from __future__ import annotations

import hashlib
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from windlass.app import Windlass
from windlass.config import Settings
from windlass.core.access import TOKEN_PREFIX, Principal, Role
from windlass.core.job import MAX_NAME
from windlass.errors import shown
from windlass.store.nouns import Sessions, Signatures
from windlass.web.background_writes import BackgroundWrites
from windlass.web.errors import BadToken, Refusal
from windlass.web.limits import HttpLimits
from windlass.web.rate_limit import RateLimit, network_of
from windlass.web.signing import KEPT_FOR, NOWHERE, Signing, Target

if TYPE_CHECKING:
    from windlass.web.web_tokens import WebTokens

COOKIE = "windlass_session"
SESSION_LASTS = timedelta(hours=12)
LINK_LASTS = timedelta(minutes=10)
_KNOWN_FOR_S = 1.0
_MOST_KNOWN = 10_000
_FAMILIAR_FOR_S = 3600.0
_MOST_FAMILIAR = 10_000
_MOST_SECRET_BYTES = 8192 + len("Bearer ")
_CHALLENGE = {"www-authenticate": 'Bearer realm="windlass"'}
_BAD_CHALLENGE = {"www-authenticate": 'Bearer realm="windlass", error="invalid_token"'}
ADMIN = Principal("admin", Role.ADMIN)
SCRAPER = Principal("metrics", None)
"""The holder of the scrape token: without a role, it may read what monitors read and nothing else."""

Headers = Mapping[bytes, bytes]


class CheckedCredential(NamedTuple):
    """A credential that was found good a moment ago."""

    principal: Principal
    until: float
    """When it has to be looked at again, in monotonic seconds."""
    expires_at: float = math.inf
    """When it ends by itself, in seconds since 1970."""


class Credentials:
    """Checks what a request brings along: a bearer, a pull worker's signature or secret, or a session cookie."""

    def __init__(self, app: Windlass, notes: BackgroundWrites, limits: HttpLimits) -> None:
        """Take keys and secrets from the application's settings; raises ConfigError for one that cannot be used."""
        settings = app.settings
        self._app = app
        self._notes = notes
        self._admin = _digest(settings.admin_token)
        self._worker = _digest(settings.worker_secret)
        self._metrics = _digest(settings.metrics_token)
        self._signing = Signing(settings.worker_signing_secret or ())
        self._web_tokens = _web_tokens(settings)
        self._failed = RateLimit(limits.failed_credentials)
        self._known: dict[bytes, CheckedCredential] = {}
        self._familiar: OrderedDict[tuple[str, bytes], float] = OrderedDict()
        """Until when a credential that was good from an address is looked up there in any case, longest unused first."""
        self._codes: dict[bytes, float] = {}
        self._start: tuple[bytes, float] | None = None
        # A change of a static secret also ends the sessions it may have opened.
        static = (settings.admin_token, settings.jwt_secret, settings.jwt_public_key, settings.jwt_jwks)
        self._pepper = hashlib.sha256(repr(static).encode()).digest()

    @property
    def is_configured(self) -> bool:
        """Whether the settings bring any credential."""
        has_secret = self._admin is not None or self._worker is not None
        return has_secret or self._signing.is_configured or self._web_tokens is not None

    async def identify(self, headers: Headers, address: str, target: Target = NOWHERE) -> Principal:
        """Return the principal; raises a Refusal with 401, or 429 after too many failures."""
        bearer = headers.get(b"authorization")
        if bearer is not None:
            return _called(await self._known_as(b"b" + bearer, address), headers)
        if b"x-signature" in headers and self._signing.is_configured:
            return await self._signed(headers, address, target)
        if b"x-internal-secret" in headers:
            if self._signing.is_configured:
                # A secret that travels with every request is what signing is there to avoid.
                raise Refusal(401, "X-Internal-Secret: is not taken by a server that asks for signatures", _CHALLENGE)
            pair = headers.get(b"x-worker-id", b"") + b"\0" + headers[b"x-internal-secret"]
            return await self._known_as(b"w" + pair, address)
        cookie = cookie_of(headers)
        if cookie is not None:
            return await self._known_as(b"c" + cookie, address)
        raise Refusal(401, "credentials are needed: send Authorization: Bearer …", _CHALLENGE)

    async def _signed(self, headers: Headers, address: str, target: Target) -> Principal:
        """Take a signed request, once."""
        self.check_rate(self._failed, address)
        try:
            signed = self._signing.check(headers, target)
        except Refusal:
            self._failed.record(address)
            raise
        if not await Signatures(self._app).record(signed.digest, KEPT_FOR):
            raise Refusal(401, "X-Signature: was used before; sign every request anew, with another X-Nonce", _BAD_CHALLENGE)
        return _worker(signed.worker)._replace(is_signed=True)

    async def _known_as(self, presented: bytes, address: str) -> Principal:
        key = hashlib.sha256(presented).digest()
        known = self._known.get(key)
        if known is not None and known.until > time.monotonic():
            return known.principal
        kind, secret = presented[:1], presented[1:]
        # A cookie cannot be guessed, and a browser sends one that has ended again and again.
        if kind == b"c":
            found = await self._find(kind, secret)
        else:
            found = await self._find_within_rate(kind, secret, (network_of(address), key))
        if found is None:
            self._known.pop(key, None)
            raise Refusal(401, "the credentials are not valid", _BAD_CHALLENGE)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[key] = found
        return found.principal

    async def _find_within_rate(self, kind: bytes, secret: bytes, place: tuple[str, bytes]) -> CheckedCredential | None:
        """Look a credential up, unless its address has failed too often: an address that guesses learns nothing then.

        What was accepted from there within the hour still is: a program with an old token must not lock out others.
        """
        network, _ = place
        if self._familiar.get(place, 0.0) <= time.monotonic():
            self.check_rate(self._failed, network)
        found = await self._find(kind, secret)
        self._familiar.pop(place, None)
        if found is None:
            self._failed.record(network)
            return None
        self._familiar[place] = time.monotonic() + _FAMILIAR_FOR_S
        if len(self._familiar) > _MOST_FAMILIAR:
            self._familiar.popitem(last=False)
        return found

    @staticmethod
    def check_rate(attempts: RateLimit, address: str) -> None:
        """Raise a Refusal with 429 for an address that has failed too often."""
        wait = attempts.wait_for(address)
        if wait:
            raise Refusal(429, "too many failed attempts; try again later", {"retry-after": str(math.ceil(wait))})

    async def _find(self, kind: bytes, secret: bytes) -> CheckedCredential | None:
        if len(secret) > _MOST_SECRET_BYTES:
            return None
        if kind == b"c":
            return await self._find_session(secret)
        if kind == b"w":
            return self._find_worker(*secret.split(b"\0", 1))
        scheme, _, token = secret.partition(b" ")
        if scheme.lower() != b"bearer":
            return None
        return _for_now(SCRAPER) if _is_same(self._metrics, token.strip()) else await self.find_bearer(token.strip())

    async def find_bearer(self, token: bytes) -> CheckedCredential | None:
        """Return the principal of a bearer token; None when it is unknown."""
        if _is_same(self._admin, token) or self._is_start_token(token):
            return _for_now(ADMIN)
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return None
        if text.startswith(TOKEN_PREFIX):
            return await self._find_token(text)
        if self._web_tokens is not None:
            try:
                principal, expires_at = self._web_tokens.principal_of(text)
            except BadToken:
                return None
            return _for_now(principal, expires_at)
        return None

    async def _find_token(self, secret: str) -> CheckedCredential | None:
        token = await self._app.tokens.find(secret)
        if token is None:
            return None
        self._notes.seen(token.id)
        ends = math.inf if token.expires_at is None else token.expires_at.timestamp()
        return _for_now(Principal(token.principal, token.role, token.lanes, worker=token.worker), ends)

    def _find_worker(self, worker: bytes, secret: bytes) -> CheckedCredential | None:
        """Take a pull worker by the shared secret; its name is what it sends."""
        name = worker.decode("latin-1")
        if not _is_same(self._worker, secret) or not name or len(name) > MAX_NAME or not name.isprintable():
            return None
        return _for_now(_worker(name))

    async def _find_session(self, cookie: bytes) -> CheckedCredential | None:
        session = await Sessions(self._app).find(self.session_digest(cookie))
        return None if session is None else _for_now(Principal(session.principal, session.role, csrf=session.csrf))

    def session_digest(self, cookie: bytes) -> str:
        """Return a digest of a session's cookie."""
        return hashlib.sha256(self._pepper + cookie).hexdigest()

    def forget(self, cookie: bytes) -> None:
        """Do not take a cookie for good any longer."""
        self._known.pop(hashlib.sha256(b"c" + cookie).digest(), None)

    def new_code(self) -> str:
        """Make a code that logs one browser in, once, within minutes."""
        code = secrets.token_urlsafe(32)
        self._codes[hashlib.sha256(code.encode()).digest()] = time.monotonic() + LINK_LASTS.total_seconds()
        return code

    def use_code(self, code: str) -> bool:
        """Take a code; the next time it is no longer good."""
        until = self._codes.pop(hashlib.sha256(code.encode(errors="surrogateescape")).digest(), 0.0)
        return until > time.monotonic()

    def new_start_token(self) -> str:
        """Make a bearer token that only this process accepts, for the first minutes after a start."""
        token = secrets.token_urlsafe(32)
        self._start = hashlib.sha256(token.encode()).digest(), time.monotonic() + LINK_LASTS.total_seconds()
        return token

    def _is_start_token(self, token: bytes) -> bool:
        return self._start is not None and _is_same(self._start[0], token) and self._start[1] > time.monotonic()


def _worker(name: str) -> Principal:
    return Principal(f"worker:{name}"[:MAX_NAME], Role.WORKER, worker=name)


def _called(principal: Principal, headers: Headers) -> Principal:
    """Hold a worker to the id that its token is bound to; it may add the name of a process."""
    given = headers.get(b"x-worker-id", b"").decode("latin-1")
    if principal.role is not Role.WORKER or not given:
        return principal
    called = principal.called(given)
    if called is None:
        own = principal.worker or principal.name
        raise Refusal(403, f"X-Worker-Id: this token is for worker {shown(own)} and not for {shown(given[:MAX_NAME])}")
    if len(called.worker or "") > MAX_NAME or not given.isprintable():
        raise Refusal(400, f"X-Worker-Id: must be 1 to {MAX_NAME} printable characters")
    return called


def cookie_of(headers: Headers) -> bytes | None:
    """Pick our cookie out of the Cookie header."""
    for part in headers.get(b"cookie", b"").split(b";"):
        name, _, value = part.strip().partition(b"=")
        if name == COOKIE.encode() and value:
            return value
    return None


def lasts_until(expires_at: float) -> timedelta:
    """Return how long a session may last that was opened with a credential which ends then."""
    if expires_at == math.inf:
        return SESSION_LASTS
    # The credential's own clock: its issuer set when it ends.
    left = datetime.fromtimestamp(expires_at, UTC) - datetime.now(UTC)  # noqa: TID251
    return max(timedelta(seconds=1), min(SESSION_LASTS, left))


def _web_tokens(settings: Settings) -> WebTokens | None:
    if settings.jwt_secret is settings.jwt_public_key is settings.jwt_jwks is None:
        return None
    from windlass.web.web_tokens import WebTokens  # noqa: PLC0415 - brings cryptography along, a tenth of a server's start

    return WebTokens.from_settings(settings)


def _digest(secret: str | None) -> bytes | None:
    return None if secret is None else hashlib.sha256(secret.encode()).digest()


def _is_same(digest: bytes | None, presented: bytes) -> bool:
    return digest is not None and hmac.compare_digest(digest, hashlib.sha256(presented).digest())


def _for_now(principal: Principal, expires_at: float = math.inf) -> CheckedCredential:
    return CheckedCredential(principal, time.monotonic() + _KNOWN_FOR_S, expires_at)

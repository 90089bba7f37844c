"""JSON Web Tokens: which keys there are, and what a signed token claims."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from windlass.config import Settings
from windlass.core.access import Principal, Role, strongest
from windlass.core.job import MAX_NAME
from windlass.core.payload import decode_request
from windlass.core.record import record
from windlass.errors import ConfigError, InvalidInput
from windlass.web.errors import BadToken
from windlass.web.key_set import LEAST_RSA_BITS, Key, algorithm_of, read_key_set

MAX_BYTES = 8192
_LEEWAY_S = 10
_LEAST_SECRET_BYTES = 32
_LATEST = 253_402_300_800  # the year 10000
_SHAPE = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+", re.ASCII)
# Each of these asks the reader to take a key or a rule from the token itself.
_FORBIDDEN = frozenset({"crit", "b64", "jwk", "jku", "x5u", "x5c", "zip", "enc"})
_INSTANTS = ("exp", "nbf", "iat")


@record(kw_only=True)
class WebTokens:
    """Checks tokens against fixed keys."""

    keys: tuple[Key, ...]
    audience: str | None = None
    issuer: str | None = None
    default_role: Role | None = None

    @classmethod
    def from_settings(cls, settings: Settings) -> WebTokens:
        """Read the keys; raises ConfigError naming the one that cannot be used."""
        return cls(
            keys=tuple(_keys(settings)),
            audience=settings.jwt_audience,
            issuer=settings.jwt_issuer,
            default_role=settings.jwt_default_role,
        )

    def principal_of(self, token: str) -> tuple[Principal, float]:
        """Return the principal of a web token and when it ends (seconds since 1970); raises BadToken."""
        header, claims = _parts(token)
        key = self._key_for(header)
        _check_instants(claims)
        try:
            jwt.decode(
                token,
                key.material,
                algorithms=[key.algorithm],
                audience=self.audience,
                issuer=self.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp"], "verify_aud": self.audience is not None, "verify_iss": self.issuer is not None},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise BadToken(str(error)) from error
        return self._principal(claims), float(claims["exp"])

    def _key_for(self, header: Mapping[str, Any]) -> Key:
        """Pick by the key's own algorithm; the token only names the key it means."""
        kid = header.get("kid")
        fitting = [key for key in self.keys if key.algorithm == header.get("alg") and (key.kid is None or key.kid == kid)]
        if kid is None:
            fitting = fitting or [key for key in self.keys if key.algorithm == header.get("alg")]
        named = [key for key in fitting if key.kid is not None and key.kid == kid]
        if len(named or fitting) != 1:
            raise BadToken("no key of ours has this algorithm and name")
        return (named or fitting)[0]

    def _principal(self, claims: Mapping[str, Any]) -> Principal:
        subject = claims.get("sub")
        name = subject if isinstance(subject, str) and subject.isprintable() and subject else "unnamed"
        role = strongest(_role_words(claims)) or self.default_role
        return Principal(f"jwt:{name}"[:MAX_NAME], role, _lanes(claims), worker=_worker(claims))


def _keys(settings: Settings) -> Iterator[Key]:
    if settings.jwt_secret is not None:
        if len(settings.jwt_secret.encode()) < _LEAST_SECRET_BYTES:
            raise ConfigError(f"jwt_secret: must have at least {_LEAST_SECRET_BYTES} bytes, as HS256 asks for")
        yield Key("HS256", settings.jwt_secret.encode())
    if settings.jwt_public_key is not None:
        yield _pem_key(Path(settings.jwt_public_key))
    if settings.jwt_jwks is not None:
        path = Path(settings.jwt_jwks)
        yield from read_key_set(path, _read(path, "jwt_jwks"))


def _read(path: Path, setting: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}") from error


def _pem_key(path: Path) -> Key:
    try:
        material = load_pem_public_key(_read(path, "jwt_public_key"))
    except ValueError as error:
        raise ConfigError(f"jwt_public_key: {path} holds no PEM public key") from error
    algorithm = algorithm_of(material)
    if algorithm is None:
        raise ConfigError(f"jwt_public_key: must be an Ed25519 or an RSA public key of at least {LEAST_RSA_BITS} bits")
    return Key(algorithm, material)


def _parts(token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read header and claims strictly: one spelling, no key twice, nothing that asks us to trust the token."""
    if len(token) > MAX_BYTES or not _SHAPE.fullmatch(token):
        raise BadToken("is not a compact token of three parts")
    header, claims = (_document(part) for part in token.split(".")[:2])
    if _FORBIDDEN & header.keys():
        raise BadToken(f"its header has {', '.join(sorted(_FORBIDDEN & header.keys()))}")
    if not isinstance(header.get("kid", ""), str) or not isinstance(header.get("alg"), str):
        raise BadToken("its header is malformed")
    return header, claims


def _document(part: str) -> dict[str, Any]:
    try:
        found = decode_request(urlsafe_b64decode(part + "=" * (-len(part) % 4)), field="token", limit=MAX_BYTES)
    except (ValueError, InvalidInput) as error:
        raise BadToken("a part of it is not JSON") from error
    if not isinstance(found, dict):
        raise BadToken("a part of it is not an object")
    return found


def _check_instants(claims: Mapping[str, Any]) -> None:
    for name in _INSTANTS:
        value = claims.get(name)
        if name in claims and (isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LATEST):
            raise BadToken(f"its {name} is no instant")


def _role_words(claims: Mapping[str, Any]) -> Iterator[object]:
    yield claims.get("role")
    roles, scope = claims.get("roles"), claims.get("scope")
    yield from roles if isinstance(roles, list) else [roles]
    yield from scope.split() if isinstance(scope, str) else scope if isinstance(scope, list) else []


def _worker(claims: Mapping[str, Any]) -> str | None:
    """Read which worker it is for; without the claim it is the principal's own name."""
    worker = claims.get("worker")
    return worker if isinstance(worker, str) and 0 < len(worker) <= MAX_NAME and worker.isprintable() else None


def _lanes(claims: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Read which lanes a worker may serve; a claim that cannot be read allows none."""
    if "lanes" not in claims:
        return None
    lanes = claims["lanes"]
    return tuple(lane for lane in lanes if isinstance(lane, str)) if isinstance(lanes, list) else ()

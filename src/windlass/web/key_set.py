"""JSON Web Key Sets: which of their keys check signatures here."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from windlass.errors import ConfigError, shown

LEAST_RSA_BITS = 2048
log = logging.getLogger("windlass.web")


class Key(NamedTuple):
    """A key with the one algorithm it is for."""

    algorithm: str
    material: Any
    kid: str | None = None


class _Unusable(Exception):
    """A key of a set is not one for signatures that we check."""


def algorithm_of(material: object) -> str | None:
    """Return the one algorithm a public key is taken for; None where it is taken for none."""
    if isinstance(material, Ed25519PublicKey):
        return "EdDSA"
    if isinstance(material, RSAPublicKey) and material.key_size >= LEAST_RSA_BITS:
        return "RS256"
    return None


def read_key_set(path: Path, content: bytes) -> list[Key]:
    """Read the keys that can be used; the others are ignored with one warning. Raises ConfigError where none is left."""
    keys: list[Key] = []
    ignored: list[str] = []
    for place, entry in enumerate(_entries(path, content), start=1):
        try:
            keys.append(_key(entry))
        except _Unusable as reason:
            ignored.append(f"{_name(entry, place)} {reason}")
    if not keys:
        why = f": {'; '.join(ignored)}" if ignored else ""
        raise ConfigError(f"jwt_jwks: {path} holds no key for signatures{why}")
    _refuse_repeated(path, keys)
    if ignored:
        log.warning("jwt_jwks: %s: keys that cannot be used are ignored: %s", path, "; ".join(ignored))
    return keys


def _entries(path: Path, content: bytes) -> list[Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ConfigError(f"jwt_jwks: {path} holds no key set: {error}") from error
    entries = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(f"jwt_jwks: {path} holds no key set: it is an object with a list of `keys`")
    return entries


def _key(entry: Any) -> Key:
    if not isinstance(entry, dict):
        raise _Unusable("is not an object")
    if entry.get("use", "sig") != "sig":
        raise _Unusable(f"is for use {shown(entry['use'])}, not sig")
    operations = entry.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        raise _Unusable("has key_ops without verify")
    kid = entry.get("kid")
    if kid is not None and not isinstance(kid, str):
        raise _Unusable("has a kid that is not text")
    try:
        key = jwt.PyJWK(entry)
    # The library checks little before it computes with what the entry holds.
    except (ValueError, TypeError, KeyError, AttributeError, jwt.PyJWTError) as error:
        raise _Unusable(f"cannot be read: {error}") from error
    algorithm = algorithm_of(key.key)
    if algorithm is None:
        raise _Unusable(f"is neither an Ed25519 nor an RSA public key of at least {LEAST_RSA_BITS} bits")
    if key.algorithm_name != algorithm:
        raise _Unusable(f"is for {key.algorithm_name}; RS256 and EdDSA are taken")
    return Key(algorithm, key.key, kid)


def _name(entry: Any, place: int) -> str:
    kid = entry.get("kid") if isinstance(entry, dict) else None
    return f"key {place}" if kid is None else f"key {shown(kid)}"


def _refuse_repeated(path: Path, keys: list[Key]) -> None:
    """Refuse two keys of one name: which of them a token means would depend on their order."""
    counted = Counter(key.kid for key in keys if key.kid is not None)
    repeated = [kid for kid, count in counted.items() if count > 1]
    if repeated:
        raise ConfigError(f"jwt_jwks: {path} holds more than one key with kid {shown(repeated[0])}; give each its own")

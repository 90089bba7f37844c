"""Which secrets are long enough and still easy to guess."""

from __future__ import annotations

import re

_LEAST_DISTINCT = 8
_REPEATED = re.compile(r"(.{1,8})\1+.{0,7}", re.DOTALL)
_COMMON = re.compile(r"password|passw0rd|changeme|change-me|letmein|qwert|0123456|1234567|abcdefg", re.IGNORECASE)


def weakness_of(secret: str) -> str | None:
    """Return why a secret is easy to guess, without showing it; None where nothing speaks against it."""
    if len(set(secret)) < _LEAST_DISTINCT:
        return f"has fewer than {_LEAST_DISTINCT} different characters"
    if _REPEATED.fullmatch(secret):
        return "repeats a few characters"
    if secret.isdecimal():
        return "is made of digits only"
    return "contains a word that everybody tries first" if _COMMON.search(secret) else None

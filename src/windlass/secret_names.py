"""Which names stand for secrets, and JSON values without what stands under such names."""

from __future__ import annotations

import re
from typing import Any

REDACTED = "[redacted]"

_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
# Generous on purpose: a harmless value hidden from a viewer costs a question, a shown secret cannot be taken back.
# The second line asks for the end of a word, so that tokenizer and secretary stay; the third for whole words.
_SECRET = re.compile(
    r"passw(?:or)?d|passphrase|credential"
    r"|(?:secret|token|cookie|authorization|session(?:_?id)?|(?:api|private|access|signing|encryption|session)_?key)s?(?:_|$)"
    r"|(?:^|_)(?:pwd|pin|otp|jwt|bearer|auth)(?:_|$)"
)
# What only describes a secret is worth seeing: token_count, session_ttl, password_updated_at.
_ABOUT_A_SECRET = re.compile(r"_(?:at|count|enabled|expires|expiry|length|limit|name|policy|size|timeout|ttl|type)$")


def is_secret(key: str, value: object) -> bool:
    """Whether what stands under this name is to be hidden from viewers."""
    words = _WORD_BORDER.sub("_", key).lower()
    if value is None or isinstance(value, bool) or not _SECRET.search(words) or _ABOUT_A_SECRET.search(words):
        return False
    # A number under a plural is a count, as in max_tokens.
    return not (isinstance(value, int | float) and words.endswith("s"))


def redact(value: Any) -> Any:
    """Copy a JSON value with `REDACTED` in place of what stands under a key that looks secret."""
    if isinstance(value, dict):
        return {key: REDACTED if isinstance(key, str) and is_secret(key, item) else redact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact(item) for item in value]
    return value

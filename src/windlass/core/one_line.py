"""Puts a text from outside on one line."""

from __future__ import annotations

import re

# What ends a line, moves the cursor or turns the order of what is read: C0 and C1, U+2028 and U+2029, and the bidi controls.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def one_line(text: str) -> str:
    """Escape what could make a text pass for other lines, as JSON does; what is inside a JSON text stays JSON."""
    return text if text.isascii() and text.isprintable() else _UNSAFE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return _SHORT_ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"

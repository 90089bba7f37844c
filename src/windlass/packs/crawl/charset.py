"""Turns the bytes of a page into text."""

from __future__ import annotations

import codecs
import re

_IN_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_IN_PAGE = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_LOOKED_AT = 2_048
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
# Python knows more than alphabets by name; some of those take very long, or run on what they are given.
_ALPHABETS = (
    "utf-8",
    "utf-16",
    "ascii",
    "iso8859",
    "cp",
    "koi8",
    "gb",
    "big5",
    "euc",
    "shift",
    "iso2022",
    "mac",
    "tis",
    "hz",
    "ptcp",
)


def decode_page(body: bytes, content_type: str) -> str:
    """Read the bytes by their mark, their header or the page's own declaration, else as UTF-8; never raises."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body.decode(name, errors="replace")
    said = _IN_HEADER.search(content_type)
    written = None if said else _IN_PAGE.search(body[:_LOOKED_AT])
    name = said[1] if said else written[1].decode("ascii") if written else "utf-8"
    return body.decode(_known(name), errors="replace")


def _known(name: str) -> str:
    try:
        found = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    if found in {"iso8859-1", "ascii"}:
        # What the web means by it.
        return "cp1252"
    return found if found.startswith(_ALPHABETS) else "utf-8"

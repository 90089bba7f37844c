"""Pages that crawls have found, and the words they are looked up by."""

from __future__ import annotations

import hashlib
import re
from datetime import datetime
from typing import NamedTuple
from unicodedata import combining, normalize

from windlass.core.payload import sanitise_text
from windlass.core.record import record

MAX_TITLE = 1_000
MAX_TEXT = 100_000
MAX_LINKS = 1_000
MAX_SEARCH = 200
_MAX_WORD = 64
_MAX_ASKED = 20
# PostgreSQL takes a megabyte of words for a page.
_MAX_WORDS = 400_000
_WORD = re.compile(r"[^\W_]+")
_ASKED = re.compile(r"[^\W_]+\*?")


class NewPage(NamedTuple):
    """A page to keep under its address, as `new_page` made it."""

    url: str
    title: str
    text: str
    words: str
    links: tuple[str, ...]
    digest: str
    status: int
    etag: str | None = None
    last_modified: str | None = None


@record
class WebPage:
    """A page as it is kept; in lists `text` is only its beginning."""

    id: int
    source_id: str
    url: str
    title: str
    text: str
    status: int
    etag: str | None
    last_modified: str | None
    fetched_at: datetime
    changed_at: datetime
    created_at: datetime


def new_page(
    url: str,
    *,
    title: str,
    text: str,
    links: tuple[str, ...],
    body: bytes,
    status: int,
    etag: str | None,
    last_modified: str | None,
) -> NewPage:
    """Make a page that both databases can hold and find."""
    title, text = sanitise_text(title, MAX_TITLE), sanitise_text(text[:MAX_TEXT], 4 * MAX_TEXT)
    digest = hashlib.sha256(body).hexdigest()
    return NewPage(url, title, text, index_words(f"{title} {text}"), links[:MAX_LINKS], digest, status, etag, last_modified)


def key_of(url: str) -> str:
    """Name an address by its digest: it may be longer than an index takes."""
    return hashlib.sha256(url.encode(errors="replace")).hexdigest()


def index_words(text: str) -> str:
    """Write a text's words as they are looked up: each once, without case and accents."""
    found = sorted({word[:_MAX_WORD] for word in _WORD.findall(_folded(text))})
    return " ".join(found).encode()[:_MAX_WORDS].decode(errors="ignore").strip()


def search_words(search: str) -> tuple[str, ...]:
    """Read a search: all its words must be there; one with a * behind it is a prefix."""
    found = dict.fromkeys(word[:_MAX_WORD] if len(word) > _MAX_WORD else word for word in _ASKED.findall(_folded(search)))
    return tuple(found)[:_MAX_ASKED]


def _folded(text: str) -> str:
    folded = text.casefold()
    if folded.isascii():
        return folded
    return "".join(mark for mark in normalize("NFKD", folded) if not combining(mark)).casefold()

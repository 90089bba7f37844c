"""Sources: what a crawl crawls."""

from __future__ import annotations

from datetime import datetime
from unicodedata import category
from urllib.parse import urlsplit

from windlass.core.checks import check_text
from windlass.core.payload import check_stored
from windlass.core.record import record
from windlass.errors import InvalidInput

MAX_SOURCE_NAME = 255
MAX_URL = 2048
_LONGEST_LABEL = 63


@record
class NewSource:
    """A source to keep, checked when it is made; `metadata` is JSON text."""

    id: str
    name: str
    url: str
    metadata: str | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be crawled or shown."""
        check_line("id", self.id, MAX_SOURCE_NAME)
        check_line("name", self.name, MAX_SOURCE_NAME)
        check_url("url", self.url)
        if self.metadata is not None:
            check_stored(self.metadata, field="metadata")


def new_source(url: str, id: Given, name: Given, metadata: str | None = None) -> NewSource:  # noqa: A002 - the field's word
    """Describe a source that goes by what was given of it, else by its host; complaints name what was sent."""
    host = ("url", urlsplit(url).hostname or "")
    known_as = next(given for given in (id, name, host) if given[1])
    called = name if name[1] else known_as
    check_line(known_as[0], known_as[1] or "", MAX_SOURCE_NAME)
    check_line(called[0], called[1] or "", MAX_SOURCE_NAME)
    return NewSource(known_as[1] or "", called[1] or "", url, metadata)


Given = tuple[str, str | None]
"""What a caller calls a field, and its value."""


@record
class Source:
    """A source as it is kept."""

    id: str
    name: str
    url: str
    last_run_at: datetime | None
    metadata: str | None
    created_at: datetime
    updated_at: datetime


def check_line(field: str, value: str, limit: int) -> None:
    """Refuse a text that is empty, too long or has control characters."""
    check_text(field, value, limit)
    if any(category(mark) == "Cc" for mark in value):
        raise InvalidInput(field, value, "must not contain control characters")


def check_url(field: str, value: str) -> None:
    """Refuse what is not an http or https address with a host."""
    check_line(field, value, MAX_URL)
    if " " in value:
        raise InvalidInput(field, value, "must not contain spaces")
    try:
        parts = urlsplit(value)
        is_web = parts.scheme in {"http", "https"} and _is_host(parts.hostname)
        # Reading the port is what checks it.
        is_sound = is_web and (parts.port is None or parts.port > 0)
    except ValueError:
        is_sound = False
    if not is_sound:
        raise InvalidInput(field, value, "must be an http or https address")


def _is_host(name: str | None) -> bool:
    """Whether a host can be looked up at all; one dot at its end is the root's."""
    return bool(name) and all(0 < len(label) <= _LONGEST_LABEL for label in str(name).removesuffix(".").split("."))

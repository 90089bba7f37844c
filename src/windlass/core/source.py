"""Sources: what a crawl crawls."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from unicodedata import category
from urllib.parse import urlsplit

from windlass.core.checks import check_text
from windlass.core.payload import JsonText, decode_object, encode_object
from windlass.core.record import record
from windlass.errors import InvalidInput

MAX_SOURCE_NAME = 255
MAX_URL = 2048
_LONGEST_LABEL = 63


@record
class NewSource:
    """A source to keep, checked when it is made."""

    id: str
    name: str
    url: str
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        """Refuse what could not be crawled or shown."""
        check_line("id", self.id, MAX_SOURCE_NAME)
        check_line("name", self.name, MAX_SOURCE_NAME)
        check_url("url", self.url)
        self.encode_metadata()

    def encode_metadata(self) -> JsonText | None:
        """Write the metadata as it is stored."""
        return None if self.metadata is None else encode_object(self.metadata, field="metadata")


def new_source(url: str, id: Given, name: Given, metadata: dict[str, Any] | None = None) -> NewSource:  # noqa: A002 - the field's name
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
    """A source as it is kept; `metadata_json` is text as it is stored."""

    id: str
    name: str
    url: str
    last_run_at: datetime | None
    metadata_json: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def metadata(self) -> dict[str, Any] | None:
        """What was given of it beside its address, read anew each time."""
        return None if self.metadata_json is None else decode_object(self.metadata_json, field="metadata")


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

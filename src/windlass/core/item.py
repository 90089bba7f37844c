"""What workers find, and the keys that distinguish one item from another."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple
from unicodedata import decimal

from windlass.core.checks import check_text
from windlass.core.payload import JsonText, decode_object, decode_request, encode_object
from windlass.core.record import record
from windlass.errors import InvalidInput, InvalidPayload

MAX_ITEMS = 1000
MAX_ITEM_BYTES = 64 * 1024
MAX_BYTES = 1024 * 1024
MAX_FIELDS = 20
MAX_FIELD = 200
PHONE = "phone"
# A longer one is kept as its digest: an index of PostgreSQL takes 2,700 bytes.
_LONGEST_KEY = 200


class NewItem(NamedTuple):
    """An item to add: as it came, and as it will be stored."""

    value: Mapping[str, Any]
    data: JsonText


class Added(NamedTuple):
    """How many items were new, and how many were known."""

    added: int = 0
    duplicates: int = 0


@record
class Item:
    """An item as it is kept; `job_id` is the job that found it first, `data_json` its text as it is stored."""

    id: int
    collection: str
    key: str
    job_id: int
    data_json: str
    created_at: datetime

    @property
    def data(self) -> dict[str, Any]:
        """The item itself, read anew each time."""
        return decode_object(self.data_json, field="data")


class ItemCount(NamedTuple):
    """How many items a collection has; beyond a bound, that it has at least so many."""

    items: int
    is_exact: bool


def encode_items(items: object) -> tuple[NewItem, ...]:
    """Write the items of one call, or refuse them, naming the one that is wrong."""
    if not isinstance(items, Sequence) or isinstance(items, str | bytes):
        raise InvalidPayload("items", items, "must be a list of JSON objects")
    if len(items) > MAX_ITEMS:
        raise InvalidPayload("items", f"{len(items)} items", f"at most {MAX_ITEMS} fit in one call")
    room = MAX_BYTES
    written = []
    for place, item in enumerate(items):
        data = encode_object(item, field=f"items[{place}]", limit=MAX_ITEM_BYTES)
        room -= len(data.encode())
        if room < 0:
            raise InvalidPayload("items", f"{len(items)} items", f"together are larger than {MAX_BYTES} bytes")
        written.append(NewItem(item, data))
    return tuple(written)


@lru_cache(maxsize=1024)
def parse_fields(item_key: str) -> tuple[str, ...]:
    """Read a job's `item_key`, the JSON list of the fields that make an item's key; an empty list is the whole item."""
    fields = decode_request(item_key, field="item_key")
    if not isinstance(fields, list) or len(fields) > MAX_FIELDS:
        raise InvalidInput("item_key", item_key, f"must be a JSON array of at most {MAX_FIELDS} field names")
    for field in fields:
        check_text("item_key", field, MAX_FIELD)
    return tuple(fields)


def key_fields(item_key: str | None) -> tuple[str, ...]:
    """Return which fields make the key of a job's items; a list that cannot be read stands for the whole item."""
    if item_key is None:
        return (PHONE,)
    try:
        return parse_fields(item_key)
    except InvalidInput:
        return ()


def key_of(item: Mapping[str, Any], fields: Sequence[str]) -> str:
    """Name an item: by these fields, or by the whole of it when one of them is missing or empty."""
    parts = {field: _part(field, item.get(field)) for field in fields}
    if not parts or any(_is_empty(part) for part in parts.values()):
        return _digest(_canonical(item))
    # With the names: jobs that share a collection may distinguish their items by different fields.
    text = _canonical(parts)
    return text if len(text) <= _LONGEST_KEY else _digest(text)


def _part(field: str, value: object) -> object:
    return _digits(value) if field == PHONE else value


def _digits(value: object) -> str:
    """Reduce a telephone number to its digits, in whatever script."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    return "".join(str(decimal(mark)) for mark in str(value) if mark.isdecimal())


def _is_empty(part: object) -> bool:
    if isinstance(part, str):
        return not part.strip()
    return part is None or part in ([], {})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"

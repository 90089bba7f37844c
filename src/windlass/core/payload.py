"""The one strict JSON codec: what it lets through, both databases keep exactly."""

from __future__ import annotations

import json.encoder
import re
import reprlib
from collections import Counter
from collections.abc import Callable, Iterable
from json import JSONDecoder, JSONEncoder
from math import isfinite
from typing import Any, cast

from windlass.errors import InvalidPayload
from windlass.secret_names import REDACTED, is_secret

MAX_BYTES = 2**20
MAX_DEPTH = 100
# What 64 bits hold, signed or unsigned: readers in other languages silently turn anything wider into a float.
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**64 - 1

_CONTAINERS = (dict, list, tuple)
_ELLIPSIS = "…"
_PREVIEW_BYTES = 1_000
_REASON_BYTES = 200
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# A string that never closes still matches, else each quote in it would start a new scan to the end.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


class JsonText(str):
    """Text that this codec wrote or has read: it need not be looked at again."""

    __slots__ = ()


def encode(value: object, *, field: str = "payload", limit: int = MAX_BYTES) -> JsonText:
    """Write a value as compact JSON text of at most `limit` UTF-8 bytes, or raise InvalidPayload."""
    if not _is_flat(value):
        _check_value(value, field, limit)
    try:
        text = "".join(_ENCODE(value, 0))
    except (TypeError, ValueError, RecursionError) as error:
        raise _refusal(field, value, f"is not JSON: {_render(error, str)}") from error
    # Tested here and not only in the callee: most text passes, and a call costs more than all three tests.
    if not text.isascii() or "\\u0000" in text or len(text) > limit:
        _check_text(text, value, field, limit)
    return JsonText(text)


def encode_object(value: object, *, field: str = "payload", limit: int = MAX_BYTES) -> JsonText:
    """Write a value as `encode` does, and refuse anything but a JSON object."""
    if not isinstance(value, dict):
        raise _refusal(field, value, "must be a JSON object")
    return encode(value, field=field, limit=limit)


def check_stored(text: object, *, field: str, kind: type = dict) -> None:
    """Refuse text that is not one strict JSON value of this kind; what `encode` wrote passes unread."""
    if isinstance(text, JsonText):
        return
    if not isinstance(text, str) or not isinstance(decode_request(text, field=field), kind):
        raise _refusal(field, text, "must be the text of a JSON object" if kind is dict else "must be the text of a JSON array")


def decode(text: str, *, field: str = "payload") -> Any:
    """Read text that `encode` wrote."""
    try:
        # What `decoder.decode` does without its looks for white space, of which `encode` writes none.
        value, end = _SCAN_STORED(text, 0)
    except (StopIteration, ValueError, RecursionError):
        return _parse(_STORED, text, field)
    return value if end == len(text) else _parse(_STORED, text, field)


def decode_object(text: str, *, field: str = "payload") -> dict[str, Any]:
    """Read the text of an object that `encode_object` wrote."""
    value: dict[str, Any] = decode(text, field=field)
    return value


def decode_request(text: str | bytes, *, field: str = "payload", limit: int = MAX_BYTES) -> Any:
    """Read text from outside; refuse what `encode` would refuse and keys given twice, which two readers take differently."""
    text = _read_utf8(text, field, limit)
    _check_nesting(text, field)
    value = _parse(_REQUEST, text, field)
    _check_value(value, field, len(text))
    # Only an escape can bring in a NUL or half a surrogate pair: raw ones never get this far.
    if "\\u" in text:
        _check_characters("".join(_ENCODE(value, 0)), value, field)
    return value


def sanitise_text(text: object, limit: int) -> str:
    """Make text of any object that both databases can hold, at most `limit` UTF-8 bytes, and never raise."""
    room = max(limit, 0)
    # A character takes a byte or more, so this slice decides everything and keeps huge text cheap.
    kept = _UNSTORABLE.sub("\ufffd", _render(text, str)[: room + 1])
    raw = kept.encode()
    if len(raw) <= room:
        return kept
    mark = _ELLIPSIS if room >= len(_ELLIPSIS.encode()) else ""
    return raw[: room - len(mark.encode())].decode(errors="ignore") + mark


def sanitise_result(value: object, limit: int) -> str:
    """Write any object as JSON text, and never raise: what cannot be written becomes an object with the reason.

    The text has at most `limit` bytes if that is 4 or more.
    """
    try:
        return encode(value, field="result", limit=limit)
    except InvalidPayload as error:
        return _substitute(value, error.reason, limit)
    except Exception as error:  # noqa: BLE001 - a finish may not fail on what a handler returned
        return _substitute(value, f"reading it raised {_name_of_type(type(error))}", limit)


def _make_encoder() -> Callable[[object, int], Iterable[str]]:
    """Build the C encoder once: `JSONEncoder.encode` builds one per call, which costs half a small payload."""
    plain = JSONEncoder(ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    escape: Any = getattr(json.encoder, "encode_basestring", None)
    is_sorted = skips_keys = allows_nan = False
    try:
        made = make(None, plain.default, escape, None, ":", ",", is_sorted, skips_keys, allows_nan)
    except TypeError:
        # Another Python than those we know: slower, and the same text.
        return lambda value, _level: plain.iterencode(value)
    return cast("Callable[[object, int], Iterable[str]]", made)


def _is_flat(value: object) -> bool:
    """Return at the least cost whether this is the usual payload, a dict of scalars, which needs no closer look."""
    if type(value) is not dict:
        return False
    for key, item in value.items():
        if type(key) is not str:
            return False
        kind = type(item)
        if kind is str or (kind is int and MIN_INTEGER <= item <= MAX_INTEGER) or item is None or kind is bool:
            continue
        if kind is not float or not isfinite(item):
            return False
    return True


def _check_value(value: object, field: str, limit: int) -> None:
    """Refuse what the encoder would convert or choke on: odd keys and types, large numbers, depth, sheer size."""
    # Depth first, each item paid from a budget: parts held many times make a small value endless as text.
    budget = limit
    stack: list[tuple[Any, int]] = [((value,), 0)]
    while stack:
        items, depth = stack.pop()
        if depth > MAX_DEPTH:
            raise _refusal(field, value, f"is nested deeper than {MAX_DEPTH}")
        if isinstance(items, dict):
            budget -= _length_of_keys(items, field)
            items = items.values()
        budget -= len(items)
        for item in items:
            kind = type(item)
            if kind is str:
                budget -= len(item)
            elif kind is dict or kind is list or issubclass(kind, _CONTAINERS):
                stack.append((item, depth + 1))
            elif item is not None and kind is not bool:
                _check_scalar(item, field)
        if budget < 0:
            raise _too_large(field, value, limit)


def _length_of_keys(items: dict[Any, Any], field: str) -> int:
    # The cheapest test that all keys are strings; the encoder would silently turn 1, None and True into text.
    try:
        return len("".join(items))
    except TypeError:
        odd = next((key for key in items if not isinstance(key, str)), None)
        raise _refusal(field, odd, "keys must be strings") from None


def _check_scalar(item: object, field: str) -> None:
    """Refuse all but JSON's scalars and subclasses of them, such as enums with values."""
    if isinstance(item, int):
        if not MIN_INTEGER <= item <= MAX_INTEGER:
            raise _refusal(field, item, "integers must fit in 64 bits")
    elif isinstance(item, float):
        if not isfinite(item):
            raise _refusal(field, item, "numbers must be finite")
    elif not isinstance(item, str):
        raise _refusal(field, item, f"{_name_of_type(type(item))} is not a JSON type")


def _check_text(text: str, value: object, field: str, limit: int) -> None:
    if _check_characters(text, value, field) > limit:
        raise _too_large(field, value, limit)


def _check_characters(text: str, value: object, field: str) -> int:
    """Refuse what a database cannot hold in the JSON text of a value, and count its UTF-8 bytes."""
    # A plain search first: an escaped backslash before u0000 looks the same but is rare.
    if "\\u0000" in text and _ESCAPED_NUL.search(text):
        raise _refusal(field, value, "the character U+0000 cannot be stored")
    return len(text) if text.isascii() else len(_utf8_of(text, field))


def _utf8_of(text: str, field: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _refusal(field, text[error.start : error.end], "half a surrogate pair is not a character") from None


def _read_utf8(text: str | bytes, field: str, limit: int) -> str:
    if len(text) > limit:
        raise _too_large(field, text, limit)
    if isinstance(text, str):
        if not text.isascii() and len(_utf8_of(text, field)) > limit:
            raise _too_large(field, text, limit)
        return text
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        raise _refusal(field, text[error.start : error.start + 8], f"is not UTF-8 at byte {error.start}") from None


def _check_nesting(text: str, field: str) -> None:
    """Refuse deep text before it is parsed, as the parser's recursion is bounded only by the interpreter."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text):
        mark = text[found.start()]
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            raise _refusal(field, text, f"is nested deeper than {MAX_DEPTH}")


def _parse(decoder: JSONDecoder, text: str, field: str) -> Any:
    try:
        return decoder.decode(text)
    except (ValueError, RecursionError) as error:
        raise _refusal(field, text, f"is not strict JSON: {error}") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


def _refuse_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twin, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {twin[:_REASON_BYTES]!r} is given twice")
    return found


def _refusal(field: str, culprit: object, reason: str) -> InvalidPayload:
    # Never the culprit itself: showing it may raise, recurse or print megabytes.
    return InvalidPayload(field, _preview(culprit), reason)


def _too_large(field: str, value: object, limit: int) -> InvalidPayload:
    return _refusal(field, value, f"is larger than {limit} bytes")


def _substitute(value: object, reason: str, limit: int) -> str:
    """Return in at most `limit` bytes why a value is not here, with as much of it as fits."""
    head = {"windlass_truncated": True}
    said = head | {"reason": sanitise_text(reason, _REASON_BYTES)}
    for document in (said | {"preview": sanitise_text(_preview(value), _PREVIEW_BYTES)}, said, head):
        text = "".join(_ENCODE(document, 0))
        if len(text.encode()) <= limit:
            return text
    return "null"


def _preview(value: object) -> str:
    return value[:_PREVIEW_BYTES] if type(value) is str else _render(value, _SHORT_REPR.repr)


def _render(value: object, render: Callable[[object], str]) -> str:
    try:
        # The base method returns a plain str even where a subclass came back.
        return str.__str__(render(value))
    except Exception:  # noqa: BLE001 - the value's own code may raise anything
        return f"<unprintable {_name_of_type(type(value))}>"


class _ShortRepr(reprlib.Repr):
    """Short text of a value, without what stands under a key that looks secret."""

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        """Write a dict."""
        shown = {key: REDACTED if isinstance(key, str) and is_secret(key, item) else item for key, item in x.items()}
        return super().repr_dict(shown, level)


def _make_short_repr() -> reprlib.Repr:
    short = _ShortRepr()
    short.maxlevel = 3
    short.maxstring = short.maxother = 100
    return short


# Found past metaclasses that define their own `__name__`.
_name_of_type: Callable[[type], str] = type.__dict__["__name__"].__get__
_SHORT_REPR = _make_short_repr()
_ENCODE = _make_encoder()
_STORED = JSONDecoder(parse_constant=_refuse_constant)
_SCAN_STORED: Callable[[str, int], tuple[Any, int]] = vars(_STORED)["scan_once"]
_REQUEST = JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_refuse_twins)

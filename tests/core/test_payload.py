from __future__ import annotations

import enum
import json
import math
from collections import Counter, OrderedDict, namedtuple
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.core import payload
from windlass.core.payload import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_INTEGER,
    MIN_INTEGER,
    decode,
    decode_request,
    encode,
    encode_object,
    sanitise_result,
    sanitise_text,
)
from windlass.errors import InvalidPayload
from windlass.secret_names import redact

TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=[]))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(min_value=MIN_INTEGER, max_value=MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXT, inner, max_size=5), max_leaves=20
)
LIMITS = st.integers(min_value=0, max_value=300)


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 9


class Mood(enum.StrEnum):
    GOOD = "good"


class Ratio(float):
    def __repr__(self) -> str:
        return "a ratio"


class ShoutingDict(dict[str, object]):
    pass


Point = namedtuple("Point", ["x", "y"])  # noqa: PYI024 - the untyped form is what handlers return


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class Liar:
    """Claims to be another type than it is."""

    def __init__(self, claimed: type) -> None:
        self._claimed = claimed

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return self._claimed

    def __repr__(self) -> str:
        raise ValueError("no text")


class BrokenDict(dict[str, object]):
    def items(self) -> Any:
        raise OSError("gone")

    def values(self) -> Any:
        raise OSError("gone")


class EndlessDict(dict[str, object]):
    def items(self) -> Any:
        return [("again", EndlessDict(a=1))]


class MuteError(ValueError):
    __str__ = Mute.__str__


class MuteErrorDict(dict[str, object]):
    def items(self) -> Any:
        raise MuteError


class NamelessMeta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class LoudStr(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getitem__(self, key: object) -> str:
        raise RuntimeError("no slices")


def nameless() -> object:
    kind = NamelessMeta("Nameless", (Mute,), {})
    return kind()


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def self_containing() -> object:
    value: list[object] = [1]
    value.extend([value, value, {"self": value}])
    return value


def endless_as_text() -> object:
    value: object = ["x" * 1000] * 1000
    for _ in range(20):
        value = [value] * 1000
    return value


WEIRD: list[Callable[[], object]] = [
    object,
    Mute,
    lambda: NamelessMeta("Nameless", (Mute,), {}),
    nameless,
    lambda: Liar(dict),
    lambda: Liar(list),
    lambda: Liar(str),
    lambda: Liar(int),
    lambda: Liar(float),
    lambda: BrokenDict(a=1),
    lambda: EndlessDict(a=1),
    lambda: MuteErrorDict(a=1),
    lambda: LoudStr("loud\0"),
    lambda: {"a": Mute()},
    lambda: {Mute(): 1},
    lambda: [BrokenDict(a=1)],
    lambda: nested(1000),
    lambda: nested(100_000),
    self_containing,
    lambda: 10**5000,
    lambda: math.nan,
    lambda: "\ud800\0",
    lambda: {"\ud800": "\0"},
    lambda: "x" * 10_000,
    lambda: '"\\\x01' * 5000,
    lambda: b"\xff" * 5000,
    lambda: {1, 2},
    lambda: (item for item in [1]),
    lambda: RuntimeError(Mute()),
    lambda: type,
    lambda: memoryview(b"x"),
]


@given(VALUES)
def test_a_value_survives_encoding(value: object) -> None:
    assert decode(encode(value)) == value


@given(VALUES)
def test_text_is_what_the_standard_encoder_writes(value: object) -> None:
    assert encode(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@given(VALUES)
def test_a_request_may_hold_all_that_can_be_encoded(value: object) -> None:
    assert decode_request(encode(value)) == value


@given(VALUES)
def test_a_request_in_ascii_escapes_reads_the_same(value: object) -> None:
    assert decode_request(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"url": "https://example.com/ä", "n": 1}, '{"url":"https://example.com/ä","n":1}'),
        ((1, (2,)), "[1,[2]]"),
        (Point(1, 2), "[1,2]"),
        ({"level": Level.HIGH, "mood": Mood.GOOD, "ratio": Ratio(0.5)}, '{"level":9,"mood":"good","ratio":0.5}'),
        ({Mood.GOOD: 1}, '{"good":1}'),
        (OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
        (Counter("aab"), '{"a":2,"b":1}'),
        (ShoutingDict(a=[True, None]), '{"a":[true,null]}'),
        ({"a": "\\u0000"}, '{"a":"\\\\u0000"}'),
        ([MIN_INTEGER, MAX_INTEGER], "[-9223372036854775808,18446744073709551615]"),
        ({}, "{}"),
        ("text", '"text"'),
        (None, "null"),
    ],
)
def test_writes_compact_text(value: object, text: str) -> None:
    assert encode(value) == text


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        Ratio("inf"),
        float("1e400"),
        "\0",
        "\\\0",
        "\\\\u0000\0",
        "\ud800",
        "\udc00\ud800",
        MIN_INTEGER - 1,
        MAX_INTEGER + 1,
        datetime(2026, 1, 1, tzinfo=UTC),
        {1, 2},
        b"bytes",
        Decimal("1.5"),
        Colour.RED,
        object(),
    ],
)
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": value}, lambda value: {"a": [{"b": value}]}])
def test_refuses_values_that_a_database_would_refuse_or_change(value: object, wrap: Callable[[object], object]) -> None:
    with pytest.raises(InvalidPayload, match=r"^payload: "):
        encode(wrap(value))


@pytest.mark.parametrize("key", ["\0", "\ud800", 1, 1.5, True, None, (1, 2), Colour.RED])
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: [{"b": value}]])
def test_refuses_keys_that_are_not_storable_strings(key: object, wrap: Callable[[object], object]) -> None:
    with pytest.raises(InvalidPayload):
        encode(wrap({"a": 1, key: 2}))


def test_depth_is_counted_in_containers() -> None:
    assert decode_request(encode(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(InvalidPayload, match="deeper than 100"):
        encode(nested(MAX_DEPTH + 1))


@pytest.mark.parametrize("make", [lambda: nested(1000), lambda: nested(100_000), self_containing])
def test_refuses_what_would_recurse_without_end(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidPayload, match="deeper"):
        encode(make())


def test_refuses_what_is_small_in_memory_and_endless_as_text() -> None:
    with pytest.raises(InvalidPayload, match="larger than 1048576 bytes"):
        encode(endless_as_text())


@pytest.mark.parametrize("character", ["a", "ä", "€", "😀"])
def test_the_limit_counts_utf8_bytes(character: str) -> None:
    text = character * 10
    size = len(text.encode()) + 2
    assert encode(text, limit=size)
    with pytest.raises(InvalidPayload, match="larger"):
        encode(text, limit=size - 1)


def test_an_error_names_the_field_and_shows_the_culprit() -> None:
    with pytest.raises(InvalidPayload) as caught:
        encode({"when": [Decimal("1.5")]}, field="metadata")
    assert caught.value.field == "metadata"
    assert "Decimal is not a JSON type" in str(caught.value)
    assert "Decimal('1.5')" in str(caught.value)


@pytest.mark.parametrize("value", [[], "text", 1, None, [("a", 1)]])
def test_an_object_is_asked_for_where_only_that_fits(value: object) -> None:
    with pytest.raises(InvalidPayload, match="must be a JSON object"):
        encode_object(value, field="metadata")


def test_an_object_is_encoded_where_one_is_asked_for() -> None:
    assert encode_object({"a": 1}) == '{"a":1}'


def test_a_python_without_the_c_encoder_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("json.encoder.c_make_encoder", None)
    monkeypatch.setattr(payload, "_ENCODE", payload._make_encoder())
    assert encode({"a": ["ä", 1.5, None]}) == '{"a":["ä",1.5,null]}'


@pytest.mark.parametrize("text", ["", "{", "NaN", "[Infinity]", "[-Infinity]", "1 2", "'a'", "9" * 5000, "[" * 100_000])
def test_stored_text_that_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidPayload):
        decode(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a":1,}',
        "NaN",
        '{"a":NaN}',
        "[Infinity]",
        "[-Infinity]",
        "1e400",
        '{"a":[-1e999]}',
        "18446744073709551616",
        "9" * 5000,
        '{"a":1,"a":2}',
        '[{"a":1,"b":{"c":1,"\\u0063":2}}]',
        '"\\u0000"',
        '{"\\u0000":1}',
        '"\0"',
        '"\\ud800"',
        '{"\\udfff":1}',
        '"\\ud800x\\udc00"',
        '"\ud800"',
        "[" * 101 + "]" * 101,
        "[" * 1000,
        "[" * 1_000_000,
        '{"a":' * 100_000,
        '"' + '\\"' * 500_000,
        "\ufeff{}",
        b"\xff",
        b'"\xed\xa0\x80"',
        b'"\xc0\x80"',
        b"\xef\xbb\xbf{}",
        "{}".encode("utf-16"),
    ],
    ids=lambda text: ascii(text[:20]),
)
def test_a_request_that_is_not_strict_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidPayload, match=r"^body: "):
        decode_request(text, field="body")


def test_a_request_names_the_key_given_twice() -> None:
    with pytest.raises(InvalidPayload, match="key 'b' is given twice"):
        decode_request('{"a":1,"b":2,"c":3,"b":4}')


@pytest.mark.parametrize("text", ['"ää"', '"ää"'.encode()])
def test_a_request_is_limited_in_bytes(text: str | bytes) -> None:
    assert decode_request(text, limit=6) == "ää"
    with pytest.raises(InvalidPayload, match="larger than 5 bytes"):
        decode_request(text, limit=5)


@pytest.mark.parametrize("text", [json.dumps("[{" * 500), json.dumps(["\\", '"[' * 500, "]"]), json.dumps([[]] * 500)])
def test_brackets_in_strings_or_side_by_side_are_not_depth(text: str) -> None:
    assert decode_request(text) == json.loads(text)


def test_an_escaped_backslash_is_not_a_nul() -> None:
    assert decode_request('"\\\\u0000"') == "\\u0000"


@given(st.text(alphabet=st.sampled_from('[]{}",:\\u0d8ctrue1e9.- ')) | ANY_TEXT | st.binary())
def test_any_request_gives_an_encodable_value_or_invalid_payload(text: str | bytes) -> None:
    try:
        value = decode_request(text)
    except InvalidPayload:
        return
    encode(value)


@given(ANY_TEXT, LIMITS)
@example("\ud800" * 400, 300)
@example("ä" * 400, 2)
def test_sanitised_text_is_storable_and_within_its_limit(text: str, limit: int) -> None:
    kept = sanitise_text(text, limit)
    assert len(kept.encode()) <= limit
    assert "\0" not in kept


@given(TEXT, LIMITS)
def test_storable_text_within_the_limit_is_kept_as_it_is(text: str, limit: int) -> None:
    if len(text.encode()) <= limit:
        assert sanitise_text(text, limit) == text


@given(ANY_TEXT, LIMITS)
def test_sanitising_twice_changes_nothing_more(text: str, limit: int) -> None:
    once = sanitise_text(text, limit)
    assert sanitise_text(once, limit) == once


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("a\0b", 100, "a\ufffdb"),
        ("a\ud800b", 100, "a\ufffdb"),
        ("abcdefgh", 6, "abc…"),
        ("ääää", 6, "ä…"),
        ("ääää", 2, "ä"),
        ("abc", 0, ""),
        ("abc", -5, ""),
        (ValueError("boom"), 100, "boom"),
        (None, 100, "None"),
        (Mute(), 100, "<unprintable Mute>"),
    ],
)
def test_text_is_cut_on_a_character_border_and_marked(text: object, limit: int, expected: str) -> None:
    assert sanitise_text(text, limit) == expected


@pytest.mark.parametrize("make", WEIRD)
def test_no_object_can_break_sanitised_text(make: Callable[[], object]) -> None:
    assert len(sanitise_text(make(), 50).encode()) <= 50


@pytest.mark.parametrize("limit", [4, 30, 200, MAX_BYTES])
@pytest.mark.parametrize("make", [*WEIRD, endless_as_text])
def test_no_object_can_break_a_sanitised_result(make: Callable[[], object], limit: int) -> None:
    text = sanitise_result(make(), limit)
    assert len(text.encode()) <= limit
    decode_request(text)


@given(VALUES)
def test_a_result_that_can_be_encoded_is_kept_whole(value: object) -> None:
    assert sanitise_result(value, MAX_BYTES) == encode(value)


def test_a_result_that_is_too_large_says_so_and_shows_its_start() -> None:
    kept = decode(sanitise_result("x" * 5000, 2000))
    assert kept["windlass_truncated"] is True
    assert kept["reason"] == "is larger than 2000 bytes"
    assert kept["preview"] == "x" * 1000


def test_a_result_that_is_not_json_says_so_and_shows_itself() -> None:
    assert decode(sanitise_result({1, 2}, 2000)) == {
        "windlass_truncated": True,
        "reason": "set is not a JSON type",
        "preview": "{1, 2}",
    }


@given(VALUES)
def test_redaction_keeps_the_shape_of_any_value(value: object) -> None:
    encode(redact(value), limit=10 * MAX_BYTES)

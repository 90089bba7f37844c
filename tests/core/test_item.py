"""The key of an item: which fields make it, and what counts as the same."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from windlass.core.item import MAX_ITEM_BYTES, MAX_ITEMS, encode_items, key_fields, key_of, parse_fields
from windlass.errors import InvalidInput, InvalidPayload

PHONE = ("phone",)


@pytest.mark.parametrize(
    ("phone", "same"),
    [
        ("+49 (30) 123-456", "4930123456"),
        (4930123456, "4930123456"),
        (4930123456.0, "4930123456"),
        ("٠١٢٣", "0123"),
    ],
)
def test_a_phone_is_its_digits(phone: Any, same: str) -> None:
    assert key_of({"phone": phone, "name": "Ann"}, PHONE) == key_of({"phone": same}, PHONE) == f'{{"phone":"{same}"}}'


@pytest.mark.parametrize("phone", ["", "  ", "none", None, True, [], {}, ["1"], 1.5])
def test_an_item_without_a_number_is_known_by_the_whole_of_it(phone: Any) -> None:
    key = key_of({"phone": phone, "name": "Ann"}, PHONE)
    assert key.startswith("sha256:")
    assert key == key_of({"name": "Ann", "phone": phone}, PHONE)
    assert key != key_of({"name": "Bob", "phone": phone}, PHONE)


def test_one_missing_field_makes_it_the_whole_item() -> None:
    fields = ("name", "city")
    assert key_of({"name": "Ann", "city": "Ulm", "x": 1}, fields) == key_of({"city": "Ulm", "name": "Ann", "x": 2}, fields)
    assert key_of({"name": "Ann", "x": 1}, fields) != key_of({"name": "Ann", "x": 2}, fields)


def test_values_that_only_look_alike_are_different_keys() -> None:
    keys = {key_of({"id": value}, ("id",)) for value in (0, False, "0", 0.0, [0], {"0": 0})}
    assert len(keys) == 6
    assert key_of({"id": "1"}, ("id",)) != key_of({"no": "1"}, ("no",))


def test_the_order_of_the_fields_does_not_matter() -> None:
    item = {"a": 1, "b": 2}
    assert key_of(item, ("a", "b")) == key_of(item, ("b", "a"))


def test_a_long_key_is_kept_as_its_digest() -> None:
    long = key_of({"id": "x" * 5000}, ("id",))
    assert len(long) < 100
    assert long != key_of({"id": "x" * 5001}, ("id",))


def test_an_empty_list_of_fields_means_the_whole_item() -> None:
    assert key_fields("[]") == ()
    assert key_of({"phone": "1"}, ()) != key_of({"phone": "1", "x": 2}, ())


def test_fields_default_to_the_phone_and_bad_ones_to_the_whole_item() -> None:
    assert key_fields(None) == PHONE
    assert key_fields('["a","b"]') == ("a", "b")
    assert key_fields("[1]") == key_fields("{}") == key_fields("nonsense") == ()


@pytest.mark.parametrize("text", ["{}", "[1]", '[""]', '["' + "x" * 201 + '"]', str(["x"] * 21).replace("'", '"'), "nonsense"])
def test_bad_fields_are_refused_by_name(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_fields(text)
    assert refused.value.field == "item_key"


def test_items_are_written_as_they_came() -> None:
    class Kind(StrEnum):
        LEAD = "lead"

    [item] = encode_items([{"b": Kind.LEAD, "a": [1, 2.5, None], "ü": "ß"}])
    assert item.data == '{"b":"lead","a":[1,2.5,null],"ü":"ß"}'
    assert encode_items(()) == ()


@pytest.mark.parametrize(
    ("items", "field"),
    [
        ("abc", "items"),
        ({"phone": "1"}, "items"),
        (None, "items"),
        ([{}] * (MAX_ITEMS + 1), "items"),
        ([{"x": "y" * (MAX_ITEM_BYTES - 100)}] * 20, "items"),
        ([{}, []], "items[1]"),
        ([{}, {}, {"x": "y" * MAX_ITEM_BYTES}], "items[2]"),
        ([{"x": float("nan")}], "items[0]"),
        ([{"x": "\0"}], "items[0]"),
        ([{"x": "\ud800"}], "items[0]"),
        ([{1: 2}], "items[0]"),
    ],
)
def test_bad_items_are_refused_by_name(items: Any, field: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        encode_items(items)
    assert refused.value.field == field

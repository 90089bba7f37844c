from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from windlass import InvalidInput, InvalidPayload, Windlass
from windlass.client.arguments import Arguments, PlainCodec
from windlass.client.task import Task


class Colour(StrEnum):
    RED = "red"


class Line(BaseModel):
    sku: str
    count: Annotated[int, Field(gt=0)]


@dataclass
class Address:
    street: str
    number: int


def plain(to: str, count: int = 1, ratio: float | None = None, flags: dict[str, Any] | None = None) -> None: ...


def rich(  # noqa: PLR0917 - one of each kind
    line: Line,
    address: Address,
    when: datetime,
    day: date,
    wait: timedelta,
    price: Decimal,
    ident: UUID,
    colour: Colour = Colour.RED,
    tags: set[str] | None = None,
) -> None: ...


def open_ended(to: str, **rest: Any) -> None: ...


def lines(lines: list[Line]) -> None: ...


def task_of(function: Callable[..., None], **options: Any) -> Task[..., None]:
    return Windlass("sqlite://").add_task(function, {**options})  # type: ignore[typeddict-item]


RICH: dict[str, Any] = {
    "line": Line(sku="a", count=2),
    "address": Address("Main", 3),
    "when": datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=UTC),
    "day": date(2026, 1, 2),
    "wait": timedelta(hours=1, microseconds=5),
    "price": Decimal("1.10"),
    "ident": UUID(int=7),
    "colour": Colour.RED,
    "tags": {"x"},
}


def test_typed_arguments_come_back_as_they_went_in() -> None:
    arguments = Arguments(rich, takes_context=False)
    assert arguments.decode(arguments.encode(RICH)) == RICH


@given(
    st.fixed_dictionaries(
        {"to": st.text().filter(lambda text: "\0" not in text and text.isprintable())},
        optional={
            "count": st.integers(-(2**63), 2**63),
            "ratio": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "flags": st.none() | st.dictionaries(st.text("abc"), st.booleans() | st.lists(st.integers(0, 9))),
        },
    )
)
def test_plain_arguments_come_back_as_they_went_in(values: dict[str, Any]) -> None:
    arguments = Arguments(plain, takes_context=False)
    assert isinstance(arguments._codec, PlainCodec)
    assert arguments.decode(arguments.encode(values)) == values


def test_defaults_stay_out_of_the_payload() -> None:
    assert task_of(plain).job("ann").payload == '{"to":"ann"}'


@pytest.mark.parametrize(
    ("function", "values", "field", "reason"),
    [
        (plain, {"to": 5}, "to", "must be str"),
        (plain, {}, "to", "is missing"),
        (plain, {"to": "a", "cuont": 1}, "cuont", "is not an argument; there are to, count, ratio, flags"),
        (plain, {"to": "a", "count": True}, "count", "must be int"),
        (plain, {"to": "a", "count": 1.0}, "count", "must be int"),
        (plain, {"to": "a", "count": 2**70}, "count", "integers must fit in 64 bits"),
        (plain, {"to": "a", "ratio": float("inf")}, "ratio", "numbers must be finite"),
        (plain, {"to": "a", "ratio": "1"}, "ratio", "must be NoneType or float or int"),
        (plain, {"to": "a\0"}, "to", "U+0000"),
        (plain, {"to": "\ud800"}, "to", "surrogate"),
        (plain, {"to": "a", "flags": {1: 2}}, "flags", "keys must be strings"),
        (plain, {"to": "a", "flags": {"when": date(2026, 1, 1)}}, "flags", "date is not a JSON type"),
        (plain, {"to": "x" * 2**20}, "to", "larger than"),
        (rich, {**RICH, "when": "2026-01-01T00:00:00Z"}, "when", "valid datetime"),
        (rich, {**RICH, "line": {"sku": "a", "count": 0}}, "line.count", "greater than 0"),
        (rich, {**RICH, "colour": "red"}, "colour", "instance of Colour"),
        (rich, {**RICH, "more": 1}, "more", "is not an argument"),
        (rich, {name: value for name, value in RICH.items() if name != "day"}, "day", "is missing"),
        (rich, {**RICH, "address": Address("Main", "x")}, "arguments", "xpected"),  # type: ignore[arg-type]
        (lines, {"lines": [{"sku": "a", "count": 1}, {"sku": 5, "count": 1}]}, "lines.1.sku", "valid string"),
    ],
)
def test_a_wrong_argument_is_named(function: Callable[..., None], values: dict[str, Any], field: str, reason: str) -> None:
    with pytest.raises(InvalidPayload) as refused:
        task_of(function).job(**values)
    assert refused.value.field == field
    assert reason in refused.value.reason


def test_too_many_or_twice_given_arguments_are_refused() -> None:
    task = task_of(plain)
    with pytest.raises(InvalidPayload, match="at most 4"):
        task.job("a", 1, None, None, 5)
    with pytest.raises(InvalidPayload, match="to: is given twice"):
        task.job("a", to="b")


@pytest.mark.parametrize("text", ['{"to":5}', "{}", '{"to":"a","x":1}', "[]", "{"])
def test_a_payload_that_does_not_fit_is_refused_at_run_time(text: str) -> None:
    with pytest.raises(InvalidPayload):
        task_of(plain).spec.arguments(text)


@pytest.mark.parametrize("text", ['{"lines":[{"sku":"a","count":"1.5"}]}', "{}", '{"lines":5}', "5", "{"])
def test_a_typed_payload_that_does_not_fit_is_refused_at_run_time(text: str) -> None:
    with pytest.raises(InvalidPayload):
        task_of(lines).spec.arguments(text)


def test_a_function_may_take_whatever_comes() -> None:
    task = task_of(open_ended)
    assert task.job("ann", a=1, b=[2]).payload == '{"to":"ann","a":1,"b":[2]}'
    assert task.spec.arguments('{"to":"ann","a":1}') == {"to": "ann", "a": 1}


def test_a_payload_model_is_the_payload() -> None:
    def send(line: Line) -> None: ...

    task = task_of(send, payload=Line, unique=["sku"])
    job = task.job(Line(sku="a", count=3))
    assert (job.payload, job.unique_key) == ('{"sku":"a","count":3}', '["a"]')
    assert task.spec.arguments(job.payload) == {"line": Line(sku="a", count=3)}
    with pytest.raises(InvalidPayload, match="count"):
        task.spec.arguments('{"sku":"a","count":0}')


def test_a_payload_model_must_be_the_only_parameter() -> None:
    with pytest.raises(InvalidInput, match="nothing else"):
        task_of(plain, payload=Line)


def test_arguments_travel_by_name() -> None:
    def positional(to: str, /) -> None: ...

    def star(*to: str) -> None: ...

    for function in (positional, star):
        with pytest.raises(InvalidInput, match="to: a task's arguments travel by name"):
            task_of(function)


def test_an_annotation_that_cannot_be_found_is_named() -> None:
    def send(to: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidInput, match="Nowhere"):
        task_of(send).job(to=1)


def test_a_json_payload_by_name_may_hold_what_json_can_say() -> None:
    app = Windlass("sqlite://")
    app.task(lines)
    job, is_known = app.describe("lines", {"lines": [{"sku": "a", "count": 1}]}, {})
    assert (job.payload, is_known) == ('{"lines":[{"sku":"a","count":1}]}', True)

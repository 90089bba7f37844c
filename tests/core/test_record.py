"""A record is a frozen dataclass with slots; only the making of its methods is put off."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any, Generic, NamedTuple, TypeVar, get_type_hints

import pytest

from windlass.core.record import record, shaped

T = TypeVar("T")


@record(kw_only=True)
class Point:
    """A place."""

    x: int = 0
    y: int
    notes: list[str] = field(default_factory=list, compare=False)
    secret: str = field(default="s", repr=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError(self.x)


@record
class Pair(Generic[T]):
    """Two of a kind."""

    first: T
    second: T


@record
class Triple(Pair[T]):
    """Three of a kind."""

    third: T

    def __str__(self) -> str:
        return f"{self.first}, {self.second}, {self.third}"


@dataclass(frozen=True, slots=True)
class Twin:
    first: int
    second: int


def test_a_record_is_made_as_its_fields_say() -> None:
    made = Point(y=2)
    assert (made.x, made.y, made.notes, made.secret) == (0, 2, [], "s")
    assert Point(y=1).notes is not Point(y=1).notes
    with pytest.raises(ValueError, match="-1"):
        Point(x=-1, y=0)
    with pytest.raises(TypeError, match="positional"):
        Point(1, 2)  # type: ignore[call-arg]
    assert Triple(1, 2, third=3) == Triple(1, 2, 3)
    assert str(Triple(1, 2, 3)) == "1, 2, 3"


def test_records_are_compared_by_their_fields_and_only_with_their_kind() -> None:
    assert Point(y=2, notes=["a"]) == Point(y=2)
    assert Point(y=2) != Point(y=3)
    assert Pair(1, 2) != Triple(1, 2, 3)
    assert {Pair(1, 2): "found"}[Pair(1, 2)] == "found"
    assert hash(Pair(1, 2)) == hash(Twin(1, 2))


def test_a_record_is_shown_with_its_fields() -> None:
    assert repr(Point(y=2)) == "Point(x=0, y=2, notes=[])"
    assert repr(Pair(1, 2)) == repr(Twin(1, 2)).replace("Twin", "Pair")


@pytest.mark.parametrize("change", [lambda one: setattr(one, "first", 3), lambda one: delattr(one, "first")])
def test_a_record_cannot_be_changed(change: Callable[[Any], None]) -> None:
    for made in (Pair(1, 2), Triple(1, 2, 3)):
        with pytest.raises(FrozenInstanceError):
            change(made)
        assert made.first == 1


def test_a_record_has_no_room_for_more() -> None:
    assert not hasattr(Point(y=1), "__dict__")


def test_a_record_can_be_copied_and_sent() -> None:
    made = Point(y=2, notes=["a"])
    for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), replace(made, x=0)):
        assert (again, again.notes) == (made, ["a"])


def test_a_record_can_be_examined_before_it_is_used() -> None:
    @record
    class Fresh:
        first: int
        second: str = "b"

    assert [one.name for one in fields(Fresh)] == ["first", "second"]
    assert Fresh.__match_args__ == ("first", "second")
    assert str(inspect.signature(Fresh)) == "(first: 'int', second: 'str' = 'b') -> None"
    assert get_type_hints(Fresh.__init__) == {"first": int, "second": str, "return": type(None)}


def test_methods_are_made_at_first_use() -> None:
    @record
    class Unused:
        first: int

    assert not inspect.isfunction(vars(Unused)["__init__"])
    Unused(1)
    assert inspect.isfunction(vars(Unused)["__init__"])


def test_a_record_takes_the_fields_that_another_has_under_the_same_names() -> None:
    class Measured(NamedTuple):
        x: int
        notes: list[str]
        secret: str

    measured = Measured(1, ["a"], "t")
    assert shaped(Point, measured, y=2) == Point(x=1, y=2, notes=["a"], secret="t")
    assert shaped(Point, measured, y=2, x=7).x == 7
    # Also where the record has a default: a field that is named otherwise there must not be left empty in silence.
    with pytest.raises(AttributeError, match="y"):
        shaped(Point, measured)

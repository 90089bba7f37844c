"""Records: frozen dataclasses with slots whose methods are made when one of them is first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")

_METHODS = frozenset({"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__getstate__", "__setstate__"})


class _LateMethod:
    """Stands for a method of a record until it is used."""

    __slots__ = ("_name", "_record")

    def __init__(self, record: type, name: str) -> None:
        self._record = record
        self._name = name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        _make_methods(self._record, self._name)
        return vars(self._record)[self._name].__get__(instance, owner)


def _make_methods(record: type[Any], wanted: str) -> None:
    """Let `dataclass` make a method on a class of the same fields, and take it over with those that come with it."""
    own = fields(record)
    namespace: dict[str, Any] = {
        "__module__": record.__module__,
        "__qualname__": record.__qualname__,
        "__doc__": record.__doc__,
        "__annotations__": {one.name: one.type for one in own},
        **{one.name: one for one in own},
    }
    if hasattr(record, "__post_init__"):
        namespace["__post_init__"] = record.__post_init__
    parts = {"init": wanted == "__init__", "repr": wanted == "__repr__", "eq": wanted in {"__eq__", "__hash__"}}
    made: type[Any] = dataclass(frozen=True, slots=True, **parts)(type(record.__name__, (), namespace))
    for name in _METHODS & vars(made).keys():
        if isinstance(vars(record)[name], _LateMethod):
            setattr(record, name, vars(made)[name])


@overload
def record(cls: type[T], /) -> type[T]: ...


@overload
def record(*, kw_only: bool) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[Any] | None = None, /, *, kw_only: bool = False) -> Any:
    """Make a frozen dataclass with slots.

    A command uses few of the hundred that it loads, and to compile their methods would be a quarter of its time.
    """
    if cls is None:
        return partial(record, kw_only=kw_only)
    # Else `dataclass` derives one from the signature, at a hundred times its own cost.
    cls.__doc__ = cls.__doc__ or cls.__name__
    made = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    for name in _METHODS - vars(made).keys():
        setattr(made, name, _LateMethod(made, name))
    return made


def shaped(kind: type[T], found: object, **others: Any) -> T:
    """Make a record of the fields that `found` has under the same names, and of `others`."""
    record: Any = kind
    same = {one.name: getattr(found, one.name) for one in fields(record) if one.name not in others}
    return kind(**same, **others)

"""A function's arguments: bound and checked at enqueue, read back and checked at run time."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

from windlass.core.payload import JsonText, decode, encode, encode_object
from windlass.errors import InvalidInput, InvalidPayload

_Kind = inspect.Parameter


class Codec(Protocol):
    """How the arguments of one function become a payload and come back."""

    def encode(self, given: dict[str, Any]) -> JsonText:
        """Check arguments and write them; raises InvalidPayload."""
        ...

    def decode(self, text: str) -> dict[str, Any]:
        """Read arguments and check them; raises InvalidPayload."""
        ...

    def schema(self, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """Describe the payload as JSON Schema; None for types that have none."""
        ...


class Arguments:
    """The parameters of a task's function, without its context."""

    def __init__(self, function: Callable[..., Any], *, takes_context: bool, model: Any = None) -> None:
        """Look at the signature; annotations are resolved at first use, when all names are defined."""
        self._function = function
        self._model = model
        parameters = list(inspect.signature(function).parameters.values())[1 if takes_context else 0 :]
        for parameter in parameters:
            if parameter.kind in {_Kind.POSITIONAL_ONLY, _Kind.VAR_POSITIONAL}:
                raise InvalidInput(
                    parameter.name, str(parameter), "a task's arguments travel by name; it cannot be positional only"
                )
        self._parameters = {each.name: each for each in parameters if each.kind is not _Kind.VAR_KEYWORD}
        self._is_open = len(self._parameters) < len(parameters)
        self._positional = [each.name for each in parameters if each.kind is _Kind.POSITIONAL_OR_KEYWORD]
        self._defaults = {name: each.default for name, each in self._parameters.items() if each.default is not _Kind.empty}
        if model is not None and len(parameters) != 1:
            raise InvalidInput("payload", model, "a task with a payload model takes that model and nothing else")

    @property
    def names(self) -> list[str]:
        """Every parameter's name."""
        return list(self._parameters)

    @property
    def is_open(self) -> bool:
        """Whether the function takes arguments of any name."""
        return self._is_open

    @property
    def is_model(self) -> bool:
        """Whether the payload is one model's fields."""
        return self._model is not None

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Name every argument; only what the caller gave."""
        if not args:
            return kwargs
        if len(args) > len(self._positional):
            raise InvalidPayload("arguments", args, f"at most {len(self._positional)} may be given by position")
        given = dict(zip(self._positional, args, strict=False))
        for name in given:
            if name in kwargs:
                raise InvalidPayload(name, kwargs[name], "is given twice")
        return given | kwargs

    def complete(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Add what the function would use for arguments left out."""
        return {**self._defaults, **given}

    def encode(self, given: dict[str, Any]) -> JsonText:
        """Check arguments and write them; defaults stay out. Raises InvalidPayload naming the argument."""
        return self._codec.encode(given)

    def decode(self, text: str) -> dict[str, Any]:
        """Read a payload into keyword arguments; raises InvalidPayload naming the argument."""
        return self._codec.decode(text)

    def plain(self, given: Mapping[str, Any]) -> Any:
        """Return the arguments as JSON values, the defaults among them."""
        return decode(self._codec.encode(self.complete(given)))

    def schema(self) -> dict[str, Any] | None:
        """Describe the payload as JSON Schema, with defaults; None where the annotations cannot be described."""
        try:
            return self._codec.schema(self._defaults)
        except InvalidInput:
            # An annotation that cannot be resolved is reported by the first job, which names it.
            return None

    @cached_property
    def _codec(self) -> Codec:
        hints = self._hints()
        required = self._parameters.keys() - self._defaults.keys()
        if self._model is None:
            try:
                kinds = {name: _kinds_of(hints[name]) for name in self._parameters}
            except LookupError:
                pass
            else:
                return PlainCodec(kinds, required, is_open=self._is_open)
        # Only here: a process whose tasks take plain values never pays for the import.
        from windlass.client import models  # noqa: PLC0415

        if self._model is not None:
            [name] = self._parameters
            return models.ModelCodec(name, self._model)
        return models.TypedCodec(hints, required, is_open=self._is_open)

    def _hints(self) -> dict[str, Any]:
        wanted = {name: each.annotation for name, each in self._parameters.items() if each.annotation is not _Kind.empty}
        names = getattr(inspect.unwrap(self._function), "__globals__", {})
        holder: Any = SimpleNamespace(__annotations__=wanted)
        try:
            found = get_type_hints(holder, names, include_extras=True)
        except NameError as error:
            raise InvalidInput("annotation", error.name, f"{error}; define it in the module of the task's function") from error
        return {name: found.get(name, Any) for name in self._parameters}


_ANYTHING: frozenset[type] = frozenset()
_PLAIN: dict[Any, frozenset[type]] = {
    Any: _ANYTHING,
    object: _ANYTHING,
    str: frozenset({str}),
    int: frozenset({int}),
    float: frozenset({float, int}),
    bool: frozenset({bool}),
    dict: frozenset({dict}),
    dict[str, Any]: frozenset({dict}),
    list: frozenset({list}),
    list[Any]: frozenset({list}),
    None: frozenset({NoneType}),
    NoneType: frozenset({NoneType}),
}


def _kinds_of(annotation: Any) -> frozenset[type]:
    """Find the types a plain annotation allows; raises LookupError for any other annotation."""
    if get_origin(annotation) in {Union, UnionType}:
        parts = [_kinds_of(part) for part in get_args(annotation)]
        return _ANYTHING if _ANYTHING in parts else frozenset().union(*parts)
    try:
        return _PLAIN[annotation]
    except TypeError:
        raise LookupError(annotation) from None


_WORDS: dict[type, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    dict: "object",
    list: "array",
    NoneType: "null",
}


def object_schema(properties: dict[str, Any], required: Iterable[str], *, is_open: bool) -> dict[str, Any]:
    """Write the JSON Schema of arguments that travel by name."""
    return {"type": "object", "properties": properties, "required": sorted(required), "additionalProperties": is_open}


class PlainCodec:
    """Arguments that JSON knows by itself, checked by hand."""

    def __init__(self, kinds: Mapping[str, frozenset[type]], required: set[str], *, is_open: bool) -> None:
        """Take only these arguments, or any others too."""
        self._kinds = kinds
        self._required = required
        self._is_open = is_open

    def encode(self, given: dict[str, Any]) -> JsonText:
        """Check and write."""
        self._check(given)
        try:
            return encode_object(given)
        except InvalidPayload:
            for name, value in given.items():
                encode(value, field=name)
            raise

    def decode(self, text: str) -> dict[str, Any]:
        """Read and check."""
        values = decode(text)
        if type(values) is not dict:
            raise InvalidPayload("payload", values, "must be a JSON object")
        self._check(values)
        return values

    def schema(self, defaults: Mapping[str, Any]) -> dict[str, Any]:
        """Describe the payload; a default that JSON cannot carry is left out."""
        properties: dict[str, dict[str, Any]] = {}
        for name, kinds in self._kinds.items():
            # An int is allowed wherever a float is, which `number` includes already.
            words = sorted({_WORDS[kind] for kind in kinds} - ({"integer"} if float in kinds else set()))
            properties[name] = {"type": words[0] if len(words) == 1 else words} if words else {}
            if name in defaults:
                with suppress(InvalidPayload):
                    properties[name]["default"] = decode(encode(defaults[name], field=name))
        return object_schema(properties, self._required, is_open=self._is_open)

    def _check(self, given: dict[str, Any]) -> None:
        kinds = self._kinds
        for name, value in given.items():
            allowed = kinds.get(name)
            if allowed and type(value) not in allowed:
                _check_kind(name, value, allowed)
            if allowed is None and not self._is_open:
                raise InvalidPayload(name, value, f"is not an argument; there {_listed(kinds)}")
        if not self._required <= given.keys():
            [name, *_] = sorted(self._required - given.keys())
            raise InvalidPayload(name, given, "is missing")


def _check_kind(name: str, value: object, allowed: frozenset[type]) -> None:
    # True is an int to Python; as an argument it is a mistake.
    if isinstance(value, bool) or not isinstance(value, tuple(allowed)):
        raise InvalidPayload(name, value, f"must be {' or '.join(sorted(kind.__name__ for kind in allowed))}")


def _listed(names: Mapping[str, Any]) -> str:
    return f"are {', '.join(names)}" if names else "are none"

"""Arguments with types that JSON does not have, through pydantic."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NotRequired

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError, to_jsonable_python
from typing_extensions import TypedDict

from windlass.core.payload import JsonText, decode, encode, encode_object
from windlass.errors import InvalidPayload, nearest
from windlass.secret_names import is_secret

# What a server keeps for each task it has no code for.
_LARGEST_SCHEMA = 256 * 1024


class TypedCodec:
    """Arguments checked against their annotations, without any conversion but from JSON."""

    def __init__(self, hints: Mapping[str, Any], required: set[str], *, is_open: bool) -> None:
        """Build the validator."""
        fields = {name: hint if name in required else NotRequired[hint] for name, hint in hints.items()}
        make: Any = TypedDict
        shape = make("Arguments", fields)
        shape.__pydantic_config__ = ConfigDict(strict=True, extra="allow" if is_open else "forbid", arbitrary_types_allowed=False)
        self._adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(shape)
        self._names = tuple(hints)

    def encode(self, given: dict[str, Any]) -> JsonText:
        """Check and write."""
        try:
            return encode_object(self._adapter.dump_python(self._adapter.validate_python(given), mode="json", warnings="error"))
        except ValidationError as error:
            raise _refusal(error, given, self._names) from None
        except PydanticSerializationError as error:
            raise InvalidPayload("arguments", given, str(error)) from None

    def decode(self, text: str) -> dict[str, Any]:
        """Read and check."""
        try:
            return self._adapter.validate_json(text)
        except ValidationError as error:
            raise _refusal(error, decode(text), self._names) from None

    def schema(self, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """Describe the payload; a default that JSON cannot carry is left out."""
        found = _schema(self._adapter)
        for name, rule in {} if found is None else found.get("properties", {}).items():
            if name in defaults:
                with suppress(PydanticSerializationError, InvalidPayload):
                    rule["default"] = decode(encode(to_jsonable_python(defaults[name]), field=name))
        return found


class ModelCodec:
    """One argument whose fields are the payload."""

    def __init__(self, name: str, model: Any) -> None:
        """Build the validator."""
        self._name = name
        self._adapter: TypeAdapter[Any] = TypeAdapter(model)

    def encode(self, given: dict[str, Any]) -> JsonText:
        """Check and write."""
        if given.keys() != {self._name}:
            raise InvalidPayload(self._name, given, "is the one argument to give")
        try:
            value = self._adapter.validate_python(given[self._name])
            return encode_object(self._adapter.dump_python(value, mode="json", warnings="error"))
        except ValidationError as error:
            raise _refusal(error, given) from None
        except PydanticSerializationError as error:
            raise InvalidPayload(self._name, given, str(error)) from None

    def decode(self, text: str) -> dict[str, Any]:
        """Read and check."""
        try:
            return {self._name: self._adapter.validate_json(text)}
        except ValidationError as error:
            raise _refusal(error, decode(text)) from None

    def schema(self, defaults: Mapping[str, Any]) -> dict[str, Any] | None:
        """Describe the payload; the model has defaults of its own."""
        del defaults
        return _schema(self._adapter)


def _schema(adapter: TypeAdapter[Any]) -> dict[str, Any] | None:
    try:
        found = adapter.json_schema()
        return found if len(encode(found)) <= _LARGEST_SCHEMA else None
    except (PydanticUserError, InvalidPayload):
        # A type of the application that does not describe its JSON form.
        return None


def _refusal(error: ValidationError, given: object, names: Iterable[str] = ()) -> InvalidPayload:
    """Name the first complaint; raised `from None`, as pydantic's own text shows every value, secrets too."""
    # A misspelt name before the argument that it leaves missing.
    found = error.errors(include_url=False, include_context=False)
    [first, *others] = sorted(found, key=lambda one: one["type"] != "extra_forbidden")
    name = ".".join(str(part) for part in first["loc"]) or "payload"
    more = f" (and {len(others)} more)" if others else ""
    match first["type"]:
        case "missing":
            return InvalidPayload(name, given, f"is missing{more}")
        case "extra_forbidden":
            return InvalidPayload(name, first["input"], f"is not an argument{nearest(name, names)}{more}")
    return InvalidPayload(name, first["input"], f"{_reason(name, first)}{more}")


def _reason(name: str, complaint: ErrorDetails) -> str:
    """Write why a value is refused, without pydantic's prefix; a validator's text that quotes a secret is left out."""
    value, text = complaint["input"], complaint["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return "is refused by its validator" if is_secret(name, value) and str(value) in text else text

"""Checks a payload against the JSON Schema its task was declared with, where the task's code is not at hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from windlass.errors import InvalidPayload

# A reference that leads back to itself must not be followed for ever.
_DEEPEST = 200
_KINDS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    # 1.0 is an integer to JSON Schema, but not to the code that will get it.
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


class _Complaint(NamedTuple):
    """One thing that is wrong, and where."""

    path: tuple[str, ...]
    value: Any
    reason: str


def check_payload(schema: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
    """Raise InvalidPayload naming the first field that does not fit; keywords this check does not know refuse nothing."""
    for complaint in _SchemaWalk(schema).complaints(schema, payload, ()):
        raise InvalidPayload(".".join(complaint.path) or "payload", complaint.value, complaint.reason)


def defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the values that arguments left out have."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: rule["default"] for name, rule in properties.items() if isinstance(rule, dict) and "default" in rule}


class _SchemaWalk:
    """Walks a value and its schema together."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._depth = 0

    def complaints(self, schema: Any, value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        if not isinstance(schema, dict) or self._depth > _DEEPEST:
            return
        self._depth += 1
        for check in (self._of_kind, self._of_choices, self._of_bounds, self._of_object, self._of_array):
            yield from check(schema, value, path)
        self._depth -= 1

    def _fits(self, schema: Any, value: Any) -> bool:
        depth = self._depth
        found = next(self.complaints(schema, value, ()), None)
        self._depth = depth
        return found is None

    def _of_kind(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        asked = schema.get("type", ())
        kinds = [asked] if isinstance(asked, str) else list(asked)
        if kinds and not any(kind not in _KINDS or _KINDS[kind](value) for kind in kinds):
            yield _Complaint(path, value, f"must be {' or '.join(kinds)}")
        if "const" in schema and not _same(schema["const"], value):
            yield _Complaint(path, value, f"must be {schema['const']!r}")
        if "enum" in schema and not any(_same(one, value) for one in schema["enum"]):
            yield _Complaint(path, value, f"must be one of {', '.join(map(repr, schema['enum']))}")

    def _of_choices(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        if isinstance(reference := schema.get("$ref"), str):
            yield from self.complaints(self._named(reference), value, path)
        for part in schema.get("allOf", ()):
            yield from self.complaints(part, value, path)
        parts = schema.get("anyOf") or schema.get("oneOf") or ()
        if parts and not any(self._fits(part, value) for part in parts):
            # Of several forms, the one that is of the value's own kind describes best what is wrong with it.
            near = [part for part in parts if self._fits({"type": self._kind_of(part)}, value)]
            if len(near) == 1:
                yield from self.complaints(near[0], value, path)
            else:
                kinds = dict.fromkeys(kind for part in parts for kind in self._kind_of(part))
                yield _Complaint(path, value, f"must be {' or '.join(kinds)}" if kinds and not near else "has none of its forms")

    def _of_bounds(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        for name, (kinds, measure, is_in, words) in _BOUNDS.items():
            if name in schema and isinstance(value, kinds) and not isinstance(value, bool):
                bound = schema[name]
                if not is_in(measure(value), bound):
                    yield _Complaint(path, value, words.format(bound))
        if isinstance(pattern := schema.get("pattern"), str) and isinstance(value, str) and not _matches(pattern, value):
            yield _Complaint(path, value, f"must match {pattern}")

    def _of_object(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        if not isinstance(value, dict):
            return
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        for name, one in value.items():
            if name in known:
                yield from self.complaints(known[name], one, (*path, name))
            elif others is False and "patternProperties" not in schema:
                listed = f"are {', '.join(known)}" if known else "are none"
                yield _Complaint((*path, name), one, f"is not an argument; there {listed}")
            else:
                yield from self.complaints(others, one, (*path, name))
        for name in schema.get("required", ()):
            if name not in value:
                yield _Complaint((*path, name), value, "is missing")

    def _of_array(self, schema: dict[str, Any], value: Any, path: tuple[str, ...]) -> Iterator[_Complaint]:
        if not isinstance(value, list):
            return
        first = schema.get("prefixItems", ())
        for number, one in enumerate(value):
            rule = first[number] if number < len(first) else schema.get("items")
            yield from self.complaints(rule, one, (*path, str(number)))

    def _kind_of(self, schema: Any) -> list[str]:
        for _ in range(_DEEPEST):
            if not isinstance(schema, dict) or "$ref" not in schema:
                break
            schema = self._named(schema["$ref"])
        asked = schema.get("type", ()) if isinstance(schema, dict) else ()
        return [asked] if isinstance(asked, str) else list(asked)

    def _named(self, reference: str) -> Any:
        """Find what `#/$defs/Name` means; what lies outside the document refuses nothing."""
        found: Any = self._root
        for part in reference.removeprefix("#").split("/")[1:]:
            found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, dict) else None
        return found


_NUMBER = (int, float)
_BOUNDS: dict[str, tuple[Any, Callable[[Any], Any], Callable[[Any, Any], bool], str]] = {
    "minimum": (_NUMBER, lambda value: value, lambda value, bound: value >= bound, "must be at least {}"),
    "maximum": (_NUMBER, lambda value: value, lambda value, bound: value <= bound, "must be at most {}"),
    "exclusiveMinimum": (_NUMBER, lambda value: value, lambda value, bound: value > bound, "must be more than {}"),
    "exclusiveMaximum": (_NUMBER, lambda value: value, lambda value, bound: value < bound, "must be less than {}"),
    "minLength": (str, len, lambda value, bound: value >= bound, "must have at least {} characters"),
    "maxLength": (str, len, lambda value, bound: value <= bound, "must have at most {} characters"),
    "minItems": (list, len, lambda value, bound: value >= bound, "must have at least {} items"),
    "maxItems": (list, len, lambda value, bound: value <= bound, "must have at most {} items"),
    "minProperties": (dict, len, lambda value, bound: value >= bound, "must have at least {} fields"),
    "maxProperties": (dict, len, lambda value, bound: value <= bound, "must have at most {} fields"),
}


def _same(one: Any, other: Any) -> bool:
    # True equals 1 to Python, not to JSON.
    return isinstance(one, bool) is isinstance(other, bool) and one == other


def _matches(pattern: str, value: str) -> bool:
    find = _finder(pattern)
    return find is None or find(value)


@lru_cache(maxsize=256)
def _finder(pattern: str) -> Callable[[str], bool] | None:
    """Compile a pattern in an engine whose time grows only with the text; one that it cannot read refuses nothing."""
    # Only here: a process whose tasks have no patterns never pays for the import.
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # noqa: PLC0415

    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
    except SchemaError:
        return None

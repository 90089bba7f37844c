"""JSON as a tree that folds; numbers keep all their digits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

MOST_NODES = 400
_MOST_DEPTH = 12
_OPEN_DEPTH = 2
_OPEN_CHILDREN = 20
_MOST_TEXT = 20_000
"""How many characters of a value are shown where it is too large for a tree."""


class JsonNode(NamedTuple):
    """A value, under its name in an object or its place in an array."""

    name: str | None
    kind: str
    """`object`, `array`, `string`, `number` or `literal`."""
    text: str
    """A leaf as JSON writes it; how much there is of the others."""
    children: Sequence[JsonNode]
    is_open: bool


class ShownJson(NamedTuple):
    """A value as a page shows it: as a tree, or as the beginning of its text where it is too large for one."""

    root: JsonNode | None
    text: str
    is_cut: bool


def pretty(value: Any) -> str:
    """Write JSON for people; numbers keep all their digits."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def shown_json(value: Any) -> ShownJson:
    """Lay a value out."""
    text = pretty(value)
    root = None if _is_large(value) else _node(None, value, 0)
    return ShownJson(root, text[:_MOST_TEXT], len(text) > _MOST_TEXT)


def _is_large(value: Any) -> bool:
    for place, (depth, one) in enumerate(_walk(value)):
        if place >= MOST_NODES or depth > _MOST_DEPTH or (isinstance(one, str) and len(one) > _MOST_TEXT):
            return True
    return False


def _walk(value: Any) -> Iterator[tuple[int, Any]]:
    stack = [(0, value)]
    while stack:
        depth, one = stack.pop()
        yield depth, one
        below = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        stack.extend((depth + 1, child) for child in below)


def _node(name: str | None, value: Any, depth: int) -> JsonNode:
    if isinstance(value, dict):
        children = [_node(json.dumps(key, ensure_ascii=False), child, depth + 1) for key, child in value.items()]
        return JsonNode(name, "object", _amount(len(children), "field"), children, _is_open(depth, children))
    if isinstance(value, list):
        children = [_node(str(place), child, depth + 1) for place, child in enumerate(value)]
        return JsonNode(name, "array", _amount(len(children), "value"), children, _is_open(depth, children))
    kind = "string" if isinstance(value, str) else "literal" if value is None or isinstance(value, bool) else "number"
    return JsonNode(name, kind, json.dumps(value, ensure_ascii=False), (), is_open=False)


def _is_open(depth: int, children: Sequence[JsonNode]) -> bool:
    return depth == 0 or (depth < _OPEN_DEPTH and len(children) <= _OPEN_CHILDREN)


def _amount(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

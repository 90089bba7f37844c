"""Finds the row for a path: exact ones first, then by segment, a fixed segment before a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import unquote_to_bytes

T = TypeVar("T")
_ANY = "{}"


class RouteMatch(NamedTuple, Generic[T]):
    """What a path leads to, for each of its methods."""

    methods: Mapping[str, T]
    params: Mapping[str, str]


class _Node(Generic[T]):
    def __init__(self) -> None:
        self.below: dict[str, _Node[T]] = {}
        self.methods: dict[str, tuple[T, tuple[str, ...]]] = {}


class Router(Generic[T]):
    """Rows by path; each method of a path once."""

    def __init__(self, rows: Iterable[tuple[str, str, T]]) -> None:
        """Take (method, path, row); a path may have `{name}` segments."""
        self._root: _Node[T] = _Node()
        self._fixed: dict[bytes, dict[str, T]] = {}
        for method, path, row in rows:
            self._add(method, path, row)

    def _add(self, method: str, path: str, row: T) -> None:
        node, names = self._root, []
        for segment in path.split("/")[1:]:
            is_name = segment.startswith("{")
            if is_name:
                names.append(segment[1:-1])
            node = node.below.setdefault(_ANY if is_name else segment, _Node())
        if method in node.methods:
            raise ValueError(f"{method} {path} is in the table already")
        if any(other != tuple(names) for _, other in node.methods.values()):
            raise ValueError(f"{path} names its parameters otherwise than another method of the same path")
        node.methods[method] = row, tuple(names)
        if not names:
            self._fixed.setdefault(path.encode(), {})[method] = row

    def find(self, raw_path: bytes) -> RouteMatch[T] | None:
        """Look a path up as it was sent: what is encoded in a segment stays in that segment."""
        fixed = self._fixed.get(raw_path)
        if fixed is not None:
            return RouteMatch(fixed, {})
        try:
            segments = [unquote_to_bytes(segment).decode() for segment in raw_path.split(b"/")[1:]]
        except UnicodeDecodeError:
            return None
        found = _walk(self._root, segments, 0, [])
        if found is None:
            return None
        node, values = found
        names = next(iter(node.methods.values()))[1]
        return RouteMatch({method: row for method, (row, _) in node.methods.items()}, dict(zip(names, values, strict=True)))


def _walk(node: _Node[T], segments: list[str], at: int, values: list[str]) -> tuple[_Node[T], list[str]] | None:
    if at == len(segments):
        return (node, values) if node.methods else None
    fixed = node.below.get(segments[at])
    if fixed is not None and segments[at] != _ANY and (found := _walk(fixed, segments, at + 1, values)):
        return found
    free = node.below.get(_ANY)
    return _walk(free, segments, at + 1, [*values, segments[at]]) if free is not None and segments[at] else None

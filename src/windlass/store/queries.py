"""SQL texts by name, read from the `.sql` files of one dialect."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_HEADING = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_FOUND = re.compile(r"\bas (\w+_found)\b")
_STATEMENT_END = re.compile(r";\s*\n")


class Queries:
    """The queries of one dialect; a query is one or more statements run in one transaction."""

    def __init__(self, dialect: str) -> None:
        """Read every file once; a fragment is a query that others name in braces."""
        self._dialect = dialect
        folder = files("windlass.store").joinpath("sql", dialect)
        self._fragments = dict(_blocks(folder.joinpath("fragments.sql").read_text("utf-8")))
        self._texts: dict[str, str] = {}
        for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".sql") and file.name != "fragments.sql":
                for name, text in _blocks(file.read_text("utf-8")):
                    assert name not in self._texts, f"{dialect} has two queries named {name}"  # noqa: S101 - a slip of ours
                    self._texts[name] = text
        self._arms = {name: self._texts.pop(name) for name in list(self._texts) if name.endswith("_arm")}
        self._ready: dict[tuple[str, int], tuple[str, ...]] = {}

    @property
    def names(self) -> list[str]:
        """Every query, sorted."""
        return sorted(self._texts)

    def statements(self, name: str, arms: int = 0) -> tuple[str, ...]:
        """Return the statements of a query, its fragments filled in; `{arms}` is its `_arm` so many times."""
        found = self._ready.get((name, arms))
        if found is None:
            text = self._fill(self._texts[name], name, arms)
            found = tuple(statement for part in _STATEMENT_END.split(text) if (statement := part.strip()))
            self._ready[name, arms] = found
        return found

    def parameters(self, name: str) -> set[str]:
        """List the parameters a query asks for; what one of its statements finds for the next is none."""
        text = "\n".join(self.statements(name, 1))
        return set(PARAMETER.findall(text)) - set(_FOUND.findall(text))

    def _fill(self, text: str, name: str, arms: int) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] == "arms":
                arm = self._arms[f"{name}_arm"]
                return self._fill("\nunion all ".join(arm.replace("{i}", str(i)) for i in range(arms)), name, arms)
            return self._fill(self._fragments[match[1]], name, arms)

        return _PLACEHOLDER.sub(value, text)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    parts = _HEADING.split(text)[1:]
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        yield name, _COMMENT.sub("", body).strip()


@cache
def queries(dialect: str) -> Queries:
    """Load a dialect once per process."""
    return Queries(dialect)

"""SQL texts by name, read from the `.sql` files that all databases share and those of one dialect."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from windlass.core import aging, transitions
from windlass.core.job import WaitReason
from windlass.core.page import MAX_PAGE, MOST_COUNTED
from windlass.store.batches import microseconds
from windlass.store.spelling import spell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from windlass.core.job import JobState

PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_HEADING = re.compile(r"^-- name: ([\w{}]+)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_FOUND = re.compile(r"\bas (\w+_found)\b")
_STATEMENT_END = re.compile(r";\s*\n")
_RETRYING = f" and j.wait_reason in ('{WaitReason.RETRY}', '{WaitReason.LOST}')"
_DIRECTIONS = {
    "newest": {"down": "desc", "up": "", "before": "<", "after": ">"},
    "oldest": {"down": "", "up": "desc", "before": ">", "after": "<"},
}
"""What a query with `{direction}` in its name has in place of these words: it is two queries, one for each end of a list."""


class Queries:
    """The queries of one dialect; a query is one or more statements run in one transaction."""

    def __init__(self, dialect: str) -> None:
        """Read every file once; a fragment is a query that others name in braces."""
        self._fragments = _rules()
        self._texts: dict[str, str] = {}
        for file_name, name, text in _read(dialect):
            texts = self._fragments if file_name == "fragments.sql" else self._texts
            assert name not in texts, f"{dialect} has two queries named {name}"  # noqa: S101 - a slip of ours
            texts[name] = text
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


def _rules() -> dict[str, str]:
    """Write the rules of core that statements apply as fragments: conditions on the job `j`, and numbers."""
    conditions = {f"may_{name.replace(' ', '_')}": _may(move) for name, move in transitions.MOVES.items() if move.has_sources}
    return conditions | {
        "most_listed": str(MOST_COUNTED + MAX_PAGE + 1),
        "aging_top": str(aging.TOP),
        "aging_gain": str(aging.GAIN),
        "aging_patience_us": str(microseconds(aging.PATIENCE)),
        "aging_step_us": str(microseconds(aging.STEP)),
    }


def _may(move: transitions.LegalMove) -> str:
    """Write from which states a move is legal."""
    parts = ((move.sources, ""), (move.recurring, " and j.cadence is not null"), (move.retrying, _RETRYING))
    conditions = [f"j.state in ({_quoted(states)}){rest}" for states, rest in parts if states]
    return f"({' or '.join(conditions)})"


def _quoted(states: Iterable[JobState]) -> str:
    return ", ".join(f"'{state}'" for state in sorted(states))


def _read(dialect: str) -> Iterator[tuple[str, str, str]]:
    """Yield file, name and text of every block."""
    for folder in ("common", dialect):
        for file in sorted(files("windlass.store").joinpath("sql", folder).iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".sql"):
                for name, text in _blocks(file.read_text("utf-8")):
                    yield file.name, name, spell(text, dialect) if folder == "common" else text


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    parts = _HEADING.split(text)[1:]
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        query = _COMMENT.sub("", body).strip()
        if "{direction}" not in name:
            yield name, query
            continue
        for direction, words in _DIRECTIONS.items():
            yield name.replace("{direction}", direction), _directed(query, words)


def _directed(query: str, words: dict[str, str]) -> str:
    for word, text in words.items():
        query = query.replace(f"{{{word}}}", text)
    return query


@cache
def queries(dialect: str) -> Queries:
    """Load a dialect once per process."""
    return Queries(dialect)

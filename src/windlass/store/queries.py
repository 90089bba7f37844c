"""SQL texts by name, read from the `.sql` files that all databases share and those of one dialect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from types import MappingProxyType

from windlass.core import aging, transitions
from windlass.core.explanation import MOST_BEFORE
from windlass.core.job import RETRIED
from windlass.core.letter_page import MOST_LETTERS_READ
from windlass.core.page import MAX_PAGE, MOST_COUNTED
from windlass.core.pull import MAX_CANDIDATES
from windlass.core.related import MOST_RELATED
from windlass.store.batches import microseconds
from windlass.store.spelling import SQL, spell

PARAMETER = re.compile(r"(?<![:\w]):([a-z_][a-z0-9_]*)")
_HEADING = re.compile(r"^-- name: ([\w{}]+)$", re.MULTILINE)
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_COMMENT = re.compile(r"^\s*--.*\n?", re.MULTILINE)
_FOUND = re.compile(r"\bas (\w+_found)\b")
_STATEMENT_END = re.compile(r";\s*\n")
_DIRECTIONS = {
    "newest": {"down": "desc", "up": "", "before": "<", "after": ">"},
    "oldest": {"down": "", "up": "desc", "before": ">", "after": "<"},
}
"""Values of these placeholders where a query's name has `{direction}`: it is two queries, one for each end of a list."""

_NO_WORDS: Mapping[str, str] = MappingProxyType({})
_REPEATED = {"arms": ("_arm", "\nunion all "), "rows": ("_row", ",\n")}
"""What a query repeats: the part of its own that is named so, and what stands between."""


class _Block:
    """A query or a fragment as its file has it; a command needs few of the hundreds, so each text is made when it is needed."""

    def __init__(self, body: str, words: Mapping[str, str] = _NO_WORDS, spelled_for: str | None = None) -> None:
        self._body = body
        self._words = words
        self._spelled_for = spelled_for

    @cached_property
    def text(self) -> str:
        """The block without comments, for its direction, in its dialect."""
        text = _COMMENT.sub("", self._body).strip()
        for word, meaning in self._words.items():
            text = text.replace(f"{{{word}}}", meaning)
        return text if self._spelled_for is None else spell(text, self._spelled_for)


class Queries:
    """The queries of one dialect; a query is one or more statements run in one transaction."""

    def __init__(self, dialect: str) -> None:
        """Read every file once; a fragment is a query that others name in braces."""
        self._fragments = {name: _Block(text) for name, text in _rules().items()}
        self._queries: dict[str, _Block] = {}
        for file_name, name, block in _read(dialect):
            blocks = self._fragments if file_name == "fragments.sql" else self._queries
            assert name not in blocks, f"{dialect} has two queries named {name}"  # noqa: S101 - a slip of ours
            blocks[name] = block
        self._arms = {name: self._queries.pop(name) for name in list(self._queries) if name.endswith(("_arm", "_row"))}
        self._ready: dict[tuple[str, int], tuple[str, ...]] = {}

    @property
    def names(self) -> list[str]:
        """Every query, sorted."""
        return sorted(self._queries)

    def statements(self, name: str, arms: int = 0) -> tuple[str, ...]:
        """Return the statements of a query, filled in; `{arms}` and `{rows}` are its `_arm` and its `_row` so many times."""
        found = self._ready.get((name, arms))
        if found is None:
            text = self._fill(self._queries[name].text, name, arms)
            found = tuple(statement for part in _STATEMENT_END.split(text) if (statement := part.strip()))
            self._ready[name, arms] = found
        return found

    def parameters(self, name: str) -> set[str]:
        """List the parameters a query asks for; what one of its statements finds for the next is none."""
        text = "\n".join(self.statements(name, 1))
        return set(PARAMETER.findall(text)) - set(_FOUND.findall(text))

    def _fill(self, text: str, name: str, arms: int) -> str:
        def value(match: re.Match[str]) -> str:
            if match[1] in _REPEATED:
                ending, joint = _REPEATED[match[1]]
                part = self._arms[f"{name}{ending}"].text
                return self._fill(joint.join(part.replace("{i}", str(i)) for i in range(arms)), name, arms)
            return self._fill(self._fragments[match[1]].text, name, arms)

        return _PLACEHOLDER.sub(value, text)


def _rules() -> dict[str, str]:
    """Write the rules of core that statements apply as fragments: conditions on the job `j`, and numbers."""
    conditions = {f"may_{name.replace(' ', '_')}": _may(move) for name, move in transitions.MOVES.items() if move.has_sources}
    return conditions | {
        "most_listed": str(MOST_COUNTED + MAX_PAGE + 1),
        # One more than is shown shows that there were more.
        "most_counted": str(MOST_COUNTED + 1),
        "most_related": str(MOST_RELATED + 1),
        "most_letters": str(MOST_LETTERS_READ + 1),
        "most_before": str(MOST_BEFORE + 1),
        "most_candidates": str(MAX_CANDIDATES),
        "aging_top": str(aging.TOP),
        "aging_gain": str(aging.GAIN),
        "aging_patience_us": str(microseconds(aging.PATIENCE)),
        "aging_step_us": str(microseconds(aging.STEP)),
    }


def _may(move: transitions.LegalMove) -> str:
    """Write from which states a move is legal."""
    is_retrying = f" and j.wait_reason in ({_quoted(RETRIED)})"
    parts = ((move.sources, ""), (move.recurring, " and j.cadence is not null"), (move.retrying, is_retrying))
    conditions = [f"j.state in ({_quoted(states)}){rest}" for states, rest in parts if states]
    return f"({' or '.join(conditions)})"


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in sorted(words))


def _read(dialect: str) -> Iterator[tuple[str, str, _Block]]:
    """Yield file, name and block of everything."""
    for folder in ("common", dialect):
        for file in sorted(SQL.joinpath(folder).iterdir(), key=lambda entry: entry.name):
            if file.name.endswith(".sql"):
                for name, words, body in _bodies(file.read_text("utf-8")):
                    yield file.name, name, _Block(body, words, dialect if folder == "common" else None)


def _bodies(text: str) -> Iterator[tuple[str, Mapping[str, str], str]]:
    parts = _HEADING.split(text)[1:]
    for name, body in zip(parts[::2], parts[1::2], strict=True):
        if "{direction}" not in name:
            yield name, _NO_WORDS, body
            continue
        for direction, words in _DIRECTIONS.items():
            yield name.replace("{direction}", direction), words, body


@cache
def queries(dialect: str) -> Queries:
    """Load a dialect once per process."""
    return Queries(dialect)

"""A rule of the tables and a row that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple


class BrokenRule(NamedTuple):
    """A rule that a row breaks."""

    rule: str
    job_id: int | None
    detail: str


class Rule(NamedTuple):
    """What must hold of a row, and the message for one of which it does not."""

    name: str
    holds: Callable[[Any], Any]
    says: str


def broken(rules: Sequence[Rule], row: Any) -> Iterator[BrokenRule]:
    """Report the rules that a row breaks."""
    for rule in rules:
        if not rule.holds(row):
            yield BrokenRule(rule.name, row.job_id, rule.says.format(row=row))

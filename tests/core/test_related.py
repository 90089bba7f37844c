"""Jobs that belong together, in the order of who enqueued whom."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from windlass.core.related import trace


def jobs(*pairs: tuple[int, int | None]) -> Any:
    return [SimpleNamespace(id=number, parent_id=parent) for number, parent in pairs]


@pytest.mark.parametrize(
    ("pairs", "traced"),
    [
        ([], []),
        ([(1, None), (2, 1), (3, 1), (4, 2)], [(1, 0), (2, 1), (4, 2), (3, 1)]),
        ([(5, 99), (3, 98)], [(3, 0), (5, 0)]),
        ([(1, 1)], [(1, 0)]),
        ([(1, 3), (2, 1), (3, 2), (4, None)], [(4, 0), (1, 0), (2, 1), (3, 2)]),
        ([(1, 2), (2, None)], [(2, 0), (1, 1)]),
    ],
)
def test_a_parent_comes_before_its_children_and_circles_end(
    pairs: list[tuple[int, int | None]], traced: list[tuple[int, int]]
) -> None:
    assert [(branch.job.id, branch.depth) for branch in trace(jobs(*pairs))] == traced


def test_a_very_long_chain_is_no_problem() -> None:
    chain = jobs(*((number, number - 1 or None) for number in range(1, 5001)))
    assert trace(chain)[-1].depth == 4999

"""Which lines of a growing excerpt have not been printed yet."""

from __future__ import annotations

import pytest

from windlass.cli.logs import added_lines
from windlass.worker.logs import CUT


@pytest.mark.parametrize(
    ("shown", "lines", "added"),
    [
        ([], ["a", "b"], ["a", "b"]),
        (["a"], ["a"], []),
        (["a"], ["a", "b"], ["b"]),
        (["a", "a"], ["a", "a", "a"], ["a"]),
        (["a", "b"], [CUT, "b", "c"], ["c"]),
        ([CUT, "b", "c"], [CUT, "c", "d"], ["d"]),
        # All that was shown has been left out since.
        (["a", "b"], [CUT, "c", "d"], [CUT, "c", "d"]),
        (["a", "b"], [], []),
    ],
)
def test_only_what_came_after_the_lines_shown_is_added(shown: list[str], lines: list[str], added: list[str]) -> None:
    assert list(added_lines(shown, lines)) == added

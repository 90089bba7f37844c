"""Moves a database row by row, and goes on after each when it is told to, so that it can be killed anywhere."""

from __future__ import annotations

import sys
from contextlib import closing
from random import Random

from windlass.store import open_database
from windlass.store.moving.move import end_move, move


def show(done: int, total: int, table: str) -> None:
    print(done, total, table, flush=True)
    sys.stdin.readline()


def main(source: str, target: str) -> None:
    with closing(open_database(source, rng=Random(1))) as theirs, closing(open_database(target, rng=Random(2))) as ours:
        move(theirs, ours, show, most_rows=1)
        end_move(ours)


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The application that `windlass up` and `windlass worker` run when they are given none: only the tasks of packs."""

from __future__ import annotations

from windlass.app import Windlass

app = Windlass(name="windlass")

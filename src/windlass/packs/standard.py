"""The application of `windlass up` and `windlass worker` without one of the user: only the tasks of packs."""

from __future__ import annotations

from windlass.app import Windlass

app = Windlass(name="windlass")

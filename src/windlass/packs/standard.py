"""The application that `windlass up` runs when it is given none: only the built-in tasks."""

from __future__ import annotations

from windlass.app import Windlass

app = Windlass(name="windlass")

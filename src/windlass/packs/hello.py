"""The smallest task there is: something to enqueue before any code is written."""

from __future__ import annotations

from windlass.app import Windlass

TASK = "hello"


def install(app: Windlass) -> None:
    """Declare the task, unless the application has one of this name."""
    if TASK in app.tasks:
        return

    @app.task(name=TASK)
    async def hello(name: str = "world") -> str:
        """Return a greeting."""
        return f"Hello, {name}!"

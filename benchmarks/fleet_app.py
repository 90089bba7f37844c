"""An application whose tasks do nothing, one for each isolation."""

from __future__ import annotations

from windlass import Windlass

app = Windlass(name="bench")


@app.task(name="async")
async def on_loop() -> None:
    """Do nothing on the event loop."""


@app.task(name="thread")
def in_thread() -> None:
    """Do nothing in a thread."""


@app.task(name="process", isolation="process")
def in_process() -> None:
    """Do nothing in a child process."""

"""An application whose middleware goes around tasks in a child process."""

from __future__ import annotations

import os
from collections.abc import Iterator

from windlass import Discard, HandlerCall, JobContext, Windlass


class Unlucky(Exception):
    """An error of the application's."""


def make(url: str) -> Windlass:
    made = Windlass(url)

    @made.middleware
    def noted(call: HandlerCall) -> Iterator[None]:
        if call.arguments["number"] == 13:
            raise Discard("unlucky")
        call.arguments["number"] += 1
        result = yield
        call.context.metadata = {"pid": os.getpid(), "result": result}

    @made.task(isolation="process")
    def double(number: int) -> int:
        return 2 * number

    @made.task(isolation="process")
    async def double_later(ctx: JobContext, number: int) -> int:
        assert ctx.task == "double_later"
        return 2 * number

    @made.task(isolation="process", max_attempts=1)
    def fail(number: int) -> None:
        raise Unlucky(f"not {number}") if number > 1 else LookupError("nowhere")

    return made


app = make("sqlite:///:memory:")

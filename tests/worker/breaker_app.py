"""Applications whose tasks call one service, behind one breaker."""

from __future__ import annotations

from windlass import Windlass
from windlass.core.breaker import BreakerSpec

SERVICE = BreakerSpec("service", threshold=3)


def make(url: str | None, side: str) -> Windlass:
    """Make the application of one process; jobs of `left` run in no other."""
    app = Windlass(url, name=side, breaker_threshold=3)

    @app.task(name=f"call-{side}", breaker=SERVICE, max_attempts=1)
    async def call(*, is_up: bool) -> None:
        answer(is_up=is_up)

    @app.task(name=f"call-apart-{side}", breaker=SERVICE, max_attempts=1, isolation="process")
    def call_apart(*, is_up: bool) -> None:
        answer(is_up=is_up)

    @app.task(name=f"block-{side}", max_attempts=1)
    async def block(*, is_up: bool) -> None:
        async with app.breaker("service"):
            answer(is_up=is_up)

    @app.task(name=f"block-in-thread-{side}", max_attempts=1)
    def block_in_thread(*, is_up: bool) -> None:
        with app.breaker("service"):
            answer(is_up=is_up)

    return app


def answer(*, is_up: bool) -> None:
    if not is_up:
        raise ConnectionError("down")


left = make(None, "left")
right = make(None, "right")

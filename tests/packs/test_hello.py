from __future__ import annotations

from windlass import Windlass, packs
from windlass.testing import fresh, run_all


async def test_hello_greets() -> None:
    app = Windlass()
    packs.install(app, ["hello"])
    async with fresh(app):
        await app.enqueue("hello", {"name": "Ann"})
        [ran] = await run_all(app)
        assert ran.result == "Hello, Ann!"


async def test_an_application_with_a_hello_of_its_own_keeps_it() -> None:
    app = Windlass()

    @app.task
    async def hello() -> str:
        return "mine"

    packs.install(app, packs.SAFE)
    async with fresh(app):
        await hello.enqueue()
        [ran] = await run_all(app)
        assert ran.result == "mine"

"""Enqueues in the transactions of one driver, and prints what became of it: `callers_program.py <form> <url>`.

A program of its own, because a process has one SQLite library, and the tests' process has its own.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import sqlalchemy
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from windlass import DuplicateJob, Windlass
from windlass.sqlalchemy import windlass_on

ORDERS = "create table if not exists orders (id integer)"


def declared(app: Windlass) -> Any:
    @app.task
    def pack(order: int) -> int:
        return order

    return pack


async def picked_up(app: Windlass, enqueue: Callable[[], Awaitable[Any]]) -> Any:
    """Have a worker wait that looks by itself once a minute, so that only a wake-up is quick."""
    async with app, app.working():
        await app.wait(await app.enqueue("pack", {"order": 0}), timeout=30)
        return await app.wait(await enqueue(), timeout=30)


def session_form(url: str) -> None:
    engine = sqlalchemy.create_engine(url)
    with windlass_on(engine, poll_interval="60s") as app:
        pack = declared(app)
        app.migrate()
        with Session(engine) as session:
            on = pack.using(connection=session)
            session.execute(sqlalchemy.text(ORDERS))
            session.commit()
            session.execute(sqlalchemy.text("insert into orders values (1)"))
            on.enqueue_sync(1)
            session.rollback()
            print("rolled back", jobs(app), session.execute(sqlalchemy.text("select count(*) from orders")).scalar())
            on.using(unique_key="a").enqueue_sync(2)
            try:
                on.using(unique_key="a", on_conflict="reject").enqueue_sync(3)
            except DuplicateJob:
                print("refused")
            on.enqueue_many_sync([{"order": number} for number in range(3, 10)])
            app.enqueue_sync("pack", {"order": 10}, connection=session.connection())
            session.execute(sqlalchemy.text("insert into orders values (1)"))
            print("before the commit", jobs(app))
            session.commit()
            print("committed", jobs(app), session.execute(sqlalchemy.text("select count(*) from orders")).scalar())
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            pack.using(connection=connection).enqueue_sync(11)
            print("by itself", jobs(app))

        async def later() -> Any:
            def place() -> Any:
                with Session(engine) as session:
                    job = pack.using(connection=session).enqueue_sync(77)
                    session.commit()
                    return job

            return await asyncio.to_thread(place)

        print("picked up", asyncio.run(picked_up(app, later)))
    engine.dispose()


def jobs(app: Windlass) -> int:
    return sum(each.jobs for each in app.counts_sync())


async def async_session_form(url: str) -> None:
    engine = create_async_engine(url)
    app = windlass_on(engine, poll_interval="60s")
    pack = declared(app)
    app.migrate()
    async with app, AsyncSession(engine) as session:
        on = pack.using(connection=session)
        await session.execute(sqlalchemy.text(ORDERS))
        await session.commit()
        await session.execute(sqlalchemy.text("insert into orders values (1)"))
        await on.enqueue(1)
        await session.rollback()
        print("rolled back", await found(app), await session.scalar(sqlalchemy.text("select count(*) from orders")))
        await on.using(unique_key="a").enqueue(2)
        try:
            await on.using(unique_key="a", on_conflict="reject").enqueue(3)
        except DuplicateJob:
            print("refused")
        await on.enqueue_many([{"order": number} for number in range(3, 10)])
        await app.enqueue("pack", {"order": 10}, connection=await session.connection())
        await session.execute(sqlalchemy.text("insert into orders values (1)"))
        print("before the commit", await found(app))
        await session.commit()
        print("committed", await found(app), await session.scalar(sqlalchemy.text("select count(*) from orders")))
        await session.rollback()
        async with engine.connect() as opened:
            connection = await opened.execution_options(isolation_level="AUTOCOMMIT")
            await pack.using(connection=connection).enqueue(11)
            print("by itself", await found(app))

        async def place() -> Any:
            async with AsyncSession(engine) as session:
                job = await pack.using(connection=session).enqueue(77)
                await session.commit()
                return job

        print("picked up", await picked_up(app, place))
    await engine.dispose()


async def found(app: Windlass) -> int:
    return sum(each.jobs for each in await app.counts())


def main() -> None:
    form, url = sys.argv[1:]
    if form == "session":
        session_form(url)
    else:
        asyncio.run(async_session_form(url))


if __name__ == "__main__":
    main()

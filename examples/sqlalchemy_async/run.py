"""Places two orders, one in vain: an order and its job are one transaction of an AsyncSession.

Run it with `python examples/sqlalchemy_async/run.py`.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from windlass.sqlalchemy import windlass_on


class Base(DeclarativeBase):
    """The tables."""


class Order(Base):
    """An order."""

    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)


async def show(url: str) -> None:
    """Place the orders and wait for what comes of them."""
    engine = create_async_engine(url)
    jobs = windlass_on(engine, name="orders")

    @jobs.task
    async def pack(number: int) -> str:
        return f"order {number} is packed"

    await asyncio.to_thread(jobs.migrate)
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with jobs, jobs.working():
        async with AsyncSession(engine) as session:
            session.add(Order(number=7))
            await session.flush()
            kept = await pack.using(connection=session).enqueue(number=7)
            await session.commit()
            session.add(Order(number=8))
            await session.flush()
            await pack.using(connection=session).enqueue(number=8)
            await session.rollback()
        print(await jobs.wait(kept, timeout="60s"))
        found = await jobs.list()
        print("jobs:", [(job.payload, job.state.value) for job in found.jobs])
        assert len(found.jobs) == 1, "a rolled back transaction leaves no job"
    await engine.dispose()


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(show(os.environ.get("ORDERS_DATABASE_URL", f"sqlite+aiosqlite:///{Path(folder) / 'orders.db'}")))

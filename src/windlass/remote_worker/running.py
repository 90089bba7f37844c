"""Runs a remote worker: the engine's own, with a server in the database's place."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

from windlass.app import Windlass
from windlass.clock import DatabaseClock
from windlass.core.access import PART
from windlass.core.pool import PoolSpec
from windlass.core.report import LONGEST_EXTENSION
from windlass.core.task import Registry
from windlass.core.topic import Topic
from windlass.errors import ConfigError, WindlassError
from windlass.http_client.client import AsyncClient, Client
from windlass.remote_worker.store import SERVED, PulledLeases, PulledWork, Wants
from windlass.worker.program import Program
from windlass.worker.worker import Worker

_BEAT_WITHIN_S = 10.0
_UNKNOWN = datetime.fromtimestamp(0, UTC)
"""The time until the first job has brought the server's; nothing asks for it before."""


@asynccontextmanager
async def working(
    app: Windlass,
    url: str,
    token: str | None = None,
    *,
    lanes: Sequence[str] = (),
    slots: int = 1,
    target: str | None = None,
) -> AsyncIterator[Worker]:
    """Run the application's tasks for the server at `url` for as long as the block lasts; leaving it stops in order.

    Without `lanes` those that the tasks declare. Raises ConfigError when the server refuses the token.
    """
    served = app.served()
    name = app.process_name()
    wants = Wants(tuple(lanes) or _declared(served), tuple(sorted(served.names)))
    if not wants.tasks:
        raise ConfigError("the application has no tasks")
    given = app.worker_options()
    options = replace(
        given,
        pools=(PoolSpec(SERVED, slots),),
        prefetch=0,
        lease=min(given.lease, LONGEST_EXTENSION),
    )
    refusals: list[WindlassError] = []
    # The token names the worker; this name distinguishes its processes.
    called = f"{PART}{name}"
    with Client(url, token, worker=called, timeout=_BEAT_WITHIN_S) as blocking:
        async with AsyncClient(url, token, worker=called) as client, app.open_state() as state, asyncio.TaskGroup() as group:
            work = PulledWork(client, wants, name)
            program = Program(
                registry=served,
                hooks=app.hooks,
                profiles=app.settings.profiles,
                state=state,
                target=target,
                tracing=app.tracing,
            )
            worker = Worker(
                work,
                PulledLeases(blocking),
                program,
                clock=DatabaseClock(_UNKNOWN),
                rng=app.rng,
                name=name,
                options=options,
                decide=work.decide,
            )

            def refuse(error: WindlassError) -> None:
                refusals.append(error)
                worker.stop()

            work.refused = refuse
            work.stop_asked = lambda: worker.wake(Topic.CONTROL)
            running = group.create_task(worker.run())
            try:
                yield worker
            finally:
                worker.stop()
                work.close()
                await running
                await work.settle()
    if refusals:
        raise ConfigError(f"{url}: {refusals[0]}")


def _declared(served: Registry) -> tuple[str, ...]:
    return tuple(sorted({spec.lane for spec in served}))

"""A circuit breaker around a block of code."""

from __future__ import annotations

import logging
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from windlass.client.client import DatabaseClient
from windlass.core.blocking import run
from windlass.core.breaker import BreakerSpec
from windlass.core.current import current_job
from windlass.core.signals import counts_for_breaker
from windlass.errors import BreakerOpen, StoreError

if TYPE_CHECKING:
    from windlass.store.breakers import Breakers

log = logging.getLogger("windlass.client")


class Guard:
    """Lets a block run unless its breaker is open, and reports to the breaker how it went. For one block at a time."""

    def __init__(self, spec: BreakerSpec, clients: tuple[DatabaseClient, DatabaseClient], failures: Counter[str]) -> None:
        """Guard with this breaker; `failures` are those of this process that are not yet recorded in the store."""
        self._spec = spec
        self._client, self._twin = clients
        self._failures = failures
        self._admission: Any = None
        self._job_id: int | None = None

    async def __aenter__(self) -> None:
        await self._enter(self._client)

    def __enter__(self) -> None:
        run(self._enter(self._twin))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave(self._client, error)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        run(self._leave(self._twin, error))

    async def _enter(self, client: DatabaseClient) -> None:
        # In a handler the probe is its job's: if the worker dies, the permit ends with the lease.
        job = current_job()
        self._job_id, token = (None, None) if job is None else (job.id, job.token)
        self._admission = await (await client.store()).breakers.admit(self._spec, job_id=self._job_id, token=token)
        if not self._admission.is_admitted:
            raise BreakerOpen(self._spec.name, self._admission.probe_at)

    async def _leave(self, client: DatabaseClient, error: BaseException | None) -> None:
        if error is not None and not counts_for_breaker(error):
            return
        name = self._spec.name
        self._failures[name] = 0 if error is None else self._failures[name] + 1
        try:
            await self._tell((await client.store()).breakers, succeeded=error is None)
        except StoreError as trouble:
            # The block has its own result; a failure that was not reported is reported with the next.
            log.warning("breaker %s could not record a result: %s", name, trouble)

    async def _tell(self, breakers: Breakers, *, succeeded: bool) -> None:
        name, is_probe = self._spec.name, self._admission.is_probe
        if succeeded and not is_probe and not await breakers.count_failures(name):
            return
        failures, self._failures[name] = self._failures[name], 0
        # Only the probe is known by its job; others only report how often it failed.
        job_id, token = (self._job_id, self._admission.token) if is_probe else (None, None)
        try:
            await breakers.record(self._spec, succeeded=succeeded, failures=failures, job_id=job_id, token=token)
        except StoreError:
            self._failures[name] += failures
            raise

"""The verbs of Windlass over Django's own connections."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

from windlass.app import Windlass
from windlass.client.operations import Operator
from windlass.client.stores_by_loop import OpenedStore, block
from windlass.core.job import NewJob
from windlass.django.database import lent_store
from windlass.store.calls.call import Means

A = TypeVar("A")


class _DirectOutbox(Generic[A]):
    """Sends each job by itself: threads that shared a statement would share a transaction."""

    def __init__(self, send: Callable[[Sequence[NewJob]], Coroutine[Any, Any, list[A]]]) -> None:
        self._send = send

    async def enqueue(self, job: NewJob) -> A:
        """Enqueue a job in the transaction of this thread."""
        [answer] = await self._send([job])
        return answer


def client_of(app: Windlass, alias: str) -> Operator:
    """Return every verb over the connections of a database of the settings; use the `_sync` ones."""

    async def opened() -> OpenedStore:
        store = lent_store(alias, Means(app.rng, app.settings.profiles))
        return OpenedStore(
            store,
            _DirectOutbox(store.enqueue),
            _DirectOutbox(store.enqueue_and_get),
            block,
            is_blocking=True,
            tracing=app.tracing,
        )

    return Operator(opened, app, app.hooks)

"""Events: changes, sent as they happen."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from windlass.core.access import Role
from windlass.core.job import JobState
from windlass.core.topic import Topic
from windlass.web.changes import Changes
from windlass.web.connections import CONNECTION
from windlass.web.request_context import context_of
from windlass.web.route import Route

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

EVENT_STREAM = "text/event-stream"
_HEADERS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
_RETRY = b"retry: 1000\n\n"
_HOSTED = timedelta(seconds=10)
"""How long a stream lasts below another application: its server waits for streams before it announces that it stops."""


class ChangeOut(BaseModel):
    """What to look at again, and how many jobs there are of each state."""

    topics: list[Topic]
    """`work`: something may be claimable; `due`: something was put off; `control`: a running job or a worker was changed.

    None when only the counts have changed; all of them in the first event and after a lost one.
    """
    at: datetime
    counts: dict[JobState, int]


class EventStream(Response):
    """Sends events until the client leaves, its time is over or the server stops."""

    def __init__(self, changes: Changes, lasts_s: float) -> None:
        """Send what `changes` has."""
        super().__init__()
        self._changes = changes
        self._lasts_s = lasts_s

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer as ASGI asks."""
        del scope
        with self._changes.joined():
            async with aclosing(self._changes.events()) as events:
                # What goes wrong before the first event can still be answered.
                first = await anext(events)
                await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
                await send({"type": "http.response.body", "body": _RETRY + first, "more_body": True})
                await self._follow(events, receive, send)
            await send({"type": "http.response.body", "body": b""})

    async def _follow(self, events: AsyncIterator[bytes], receive: Receive, send: Send) -> None:
        async with asyncio.TaskGroup() as group:
            ends = {group.create_task(_feed(events, send)), group.create_task(_until_gone(receive))}
            await asyncio.wait(ends, timeout=self._lasts_s, return_when=asyncio.FIRST_COMPLETED)
            for task in ends:
                task.cancel()


async def _feed(events: AsyncIterator[bytes], send: Send) -> None:
    async for event in events:
        await send({"type": "http.response.body", "body": event, "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _answer(request: Request) -> Response:
    server = context_of(request).server
    if request.method == "GET" and EVENT_STREAM in request.headers.get("accept", "").lower():
        within = server.limits.stream_within if CONNECTION in request.scope else _HOSTED
        return EventStream(server.changes, within.total_seconds())
    seen = await server.changes.now()
    return JSONResponse(ChangeOut(topics=list(seen.topics), at=seen.at, counts=seen.counts).model_dump(mode="json"))


async def get_events(request: Request) -> ChangeOut:
    """Return the present counts, or with `Accept: text/event-stream` changes as they happen."""
    raise NotImplementedError


ROUTES = (Route("GET", "/api/v1/events", Role.VIEWER, get_events, is_stream=True, hot=_answer),)

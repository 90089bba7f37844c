"""Answers too long to be held in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import Response

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Download(Response):
    """Sends a file piece by piece; one that cannot be finished breaks the connection, and never ends as if it were whole."""

    def __init__(self, texts: AsyncIterator[str], kind: str, name: str, *, is_bare: bool = False) -> None:
        """Send `texts` as a file called `name`; a bare answer has only headers."""
        super().__init__()
        self._texts = texts
        self._is_bare = is_bare
        self._said = [
            (b"content-type", kind.encode()),
            (b"content-disposition", f'attachment; filename="{name}"'.encode()),
        ]

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer as ASGI asks."""
        del scope
        # What goes wrong before the first piece can still be answered.
        first = "" if self._is_bare else await anext(self._texts, "")
        await send({"type": "http.response.start", "status": 200, "headers": list(self._said)})
        if not self._is_bare:
            await self._send_all(first, receive, send)
        await send({"type": "http.response.body", "body": b""})

    async def _send_all(self, first: str, receive: Receive, send: Send) -> None:
        """Send until the end, or until the client has gone."""
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await _send_text(first, send)
            async for text in self._texts:
                if gone.done():
                    return
                await _send_text(text, send)
        finally:
            gone.cancel()


async def _send_text(text: str, send: Send) -> None:
    if text:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass

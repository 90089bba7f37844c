"""Answers too long to be held in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest

from windlass.web.downloads import Download

Message = MutableMapping[str, Any]


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def sent(download: Download, receive: Any) -> list[Message]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)
        await asyncio.sleep(0)

    await download({}, receive, send)
    return messages


async def test_nothing_more_is_read_once_the_client_has_gone() -> None:
    read = 0

    async def texts() -> AsyncIterator[str]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield "text"

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    await sent(Download(texts(), "text/plain", "a.txt"), gone)
    assert read < 5


async def test_an_export_that_fails_on_the_way_never_ends_as_if_it_were_whole() -> None:
    async def texts() -> AsyncIterator[str]:
        yield "first"
        raise OSError("gone")

    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    with pytest.raises(OSError, match="gone"):
        await Download(texts(), "text/plain", "a.txt")({}, never, send)
    assert [message.get("more_body") for message in messages] == [None, True]


async def test_a_bare_answer_reads_nothing() -> None:
    read = False

    async def texts() -> AsyncIterator[str]:
        nonlocal read
        read = True
        yield "text"

    messages = await sent(Download(texts(), "text/plain", "a.txt", is_bare=True), never)
    assert [message["type"] for message in messages] == ["http.response.start", "http.response.body"]
    assert not read

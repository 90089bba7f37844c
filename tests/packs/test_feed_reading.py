"""Documents that take too long, and the processes that read them."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from tests.packs.feed_site import Reply, a_site, rss
from windlass import Windlass, packs
from windlass.packs import feeds
from windlass.packs.feeds import reading
from windlass.packs.feeds.document import FeedUnreadable
from windlass.packs.feeds.reading import read_feed
from windlass.testing import run_all

URL = "https://example.org/feed"
HOSTILE = {"comments": "&lt;!--" * 250_000, "brackets": "<" * 1_900_000, "elements": "&lt;b&gt;" * 200_000}


def described(text: str) -> bytes:
    item = f"<item><guid>1</guid><description>{text}</description></item>"
    return f'<rss version="2.0"><channel><title>t</title>{item}</channel></rss>'.encode()


async def test_a_document_that_takes_too_long_is_given_up_and_its_reader_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.gather(*(read_feed(rss(1), URL) for _ in range(4)))
    before = {reader._process.pid for reader in reading._open}
    with monkeypatch.context() as patch:
        patch.setattr(reading, "_LIMIT_S", 0.3)
        found = await asyncio.gather(*(read_feed(described(text), URL) for text in HOSTILE.values()), return_exceptions=True)
    assert [str(error) for error in found] == ["takes longer than 0.3 s to read"] * len(HOSTILE)
    assert not before & {reader._process.pid for reader in reading._open}
    for pid in before:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert [entry.guid for entry in (await read_feed(rss(1, 2), URL)).entries] == ["1", "2"]
    assert len([one for one in threading.enumerate() if one.name.startswith("windlass-feeds")]) <= 2
    assert len(reading._open) <= 2


async def test_a_reader_that_is_killed_fails_its_document_and_no_other() -> None:
    task = asyncio.create_task(read_feed(described(HOSTILE["comments"]), URL))
    while not task.done():
        await asyncio.sleep(0.05)
        for reader in [*reading._open]:
            reader._process.kill()
    with pytest.raises(FeedUnreadable, match="cannot be read: its reader ended with -9"):
        await task
    assert (await read_feed(rss(1), URL)).title == "News"


async def test_a_reader_with_nothing_to_do_leaves_and_nobody_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    for reader in [*reading._open]:
        reader.close()
    monkeypatch.setattr(reading, "_IDLE_S", 0.5)
    await read_feed(rss(1), URL)
    for reader in [*reading._open]:
        assert await asyncio.to_thread(reader._process.wait) == 0
    monkeypatch.undo()
    assert (await read_feed(rss(1), URL)).title == "News"


async def test_a_feed_that_takes_too_long_is_a_failed_fetch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LIMIT_S", 0.3)
    app = Windlass("sqlite://", allow_private_addresses=True)
    packs.install(app, ["feeds"])
    async with a_site() as site, app:
        site.pages["/feed"] = lambda _: Reply(200, described(HOSTILE["comments"]))
        feed = await feeds.subscribe(app, site.url("/feed"), "ann")
        await run_all(app)
        left = await app.feeds.get(feed.id)
        assert (left.consecutive_failures, left.last_error) == (1, f"{feed.url} takes longer than 0.3 s to read")


def test_a_process_that_ends_takes_its_readers_along() -> None:
    code = (
        "import asyncio; from windlass.packs.feeds import reading; from tests.packs.feed_site import rss\n"
        "asyncio.run(reading.read_feed(rss(1), 'http://x/')); print(*(one._process.pid for one in reading._open))"
    )
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True)
    assert ran.stderr == ""
    for pid in ran.stdout.split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)

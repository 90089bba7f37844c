"""A feed reader: subscribes to two feeds that this program itself serves, prints what is new, and cleans up.

Run it with `python examples/feed_reader/run.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from tempfile import TemporaryDirectory
from typing import ClassVar

from windlass import Windlass, packs
from windlass.packs import feeds

ENTRY = "<item><guid>{name}-{number}</guid><title>{name} news {number}</title><pubDate>{date}</pubDate></item>"


class Publisher(BaseHTTPRequestHandler):
    """Publishes /cats and /dogs, each with as many entries as `published` has."""

    published: ClassVar[dict[str, int]] = {"cats": 2, "dogs": 3}

    def do_GET(self) -> None:
        """Send a feed, or 304 to who has it already."""
        name = self.path.strip("/")
        newest = self.published[name]
        if self.headers["If-None-Match"] == f'"{newest}"':
            self.send_response(304)
            self.end_headers()
            return
        items = "".join(ENTRY.format(name=name, number=n, date=formatdate()) for n in range(newest, 0, -1))
        body = f'<rss version="2.0"><channel><title>All about {name}</title>{items}</channel></rss>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/rss+xml")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{newest}"')
        self.send_header("Cache-Control", "max-age=1800")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the terminal for the reader."""


@contextmanager
def published() -> Iterator[str]:
    """Serve the feeds on this machine for as long as the block lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Publisher)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def read(app: Windlass, base: str) -> None:
    """Subscribe, print what comes, publish something, print that too, and leave."""
    followed = [await feeds.subscribe(app, f"{base}/{name}", "reader") for name in Publisher.published]
    seen: set[str] = set()
    await print_new(app, seen, 5)
    Publisher.published["cats"] += 1
    print("cats publish something; the feeds are fetched now instead of in half an hour")
    for feed in followed:
        await app.run_now(feed.job_id or 0)
    await print_new(app, seen, 6)
    for feed in followed:
        left = await feeds.unsubscribe(app, feed.id, "reader")
        print(f"left {left.title!r}: the next fetch is {left.next_fetch_at}")


async def print_new(app: Windlass, seen: set[str], expected: int) -> None:
    """Print entries as they come, until there are as many as were published."""
    while len(seen) < expected:
        for feed in await app.feeds.list(subscriber="reader"):
            for entry in reversed(await app.feeds.entries(feed.id)):
                if entry.guid not in seen:
                    seen.add(entry.guid)
                    print(f"{feed.title}: {entry.title}")
        await asyncio.sleep(0.05)


async def main() -> None:
    """Run a worker on a database of its own."""
    with TemporaryDirectory() as folder, published() as base:
        # Only because the feeds are on this machine: otherwise private addresses are refused.
        app = Windlass(f"sqlite:///{folder}/reader.db", name="reader", allow_private_addresses=True)
        packs.install(app, ["feeds"])
        async with app, app.working():
            await read(app, base)


if __name__ == "__main__":
    asyncio.run(main())

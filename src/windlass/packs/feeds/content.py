"""`websub_content`: what a hub has sent, kept as if it had been fetched."""

from __future__ import annotations

import base64
from typing import Any

from windlass.app import Windlass
from windlass.core.feed import CONTENT_TASK
from windlass.core.signals import Discard
from windlass.errors import FeedNotFound
from windlass.packs.feeds.document import FeedUnreadable
from windlass.packs.feeds.reading import read_feed


def declare(app: Windlass) -> None:
    """Declare the task."""

    @app.task(name=CONTENT_TASK)
    async def websub_content(feedId: str, body: str, content_type: str | None = None) -> dict[str, Any]:  # noqa: N803 - as in `fetch_feed`
        """Keep the entries of a document that a hub has sent, in base64; the server has checked its signature."""
        try:
            feed = await app.feeds.get(int(feedId))
            document = await read_feed(base64.b64decode(body), feed.url, content_type)
        except (ValueError, FeedNotFound, FeedUnreadable) as error:
            raise Discard(str(error)) from error
        return {"new": await (await app.store()).feeds.add_entries(feed.id, document.entries)}

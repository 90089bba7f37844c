"""Callbacks of the hubs of feeds: they verify a subscription, and send content.

A hub has no login. What lets it in is the address, which only it was given, and for content the signature.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

from fastapi import Path, Query, Request
from fastapi.responses import PlainTextResponse

from windlass.app import Windlass
from windlass.core.feed import CONTENT_TASK, Feed
from windlass.core.job import NewJob
from windlass.core.payload import MAX_BYTES, encode_object
from windlass.core.websub import LEASE, feed_of, is_known, is_signed
from windlass.errors import FeedNotFound
from windlass.web.errors import Refusal
from windlass.web.request_context import context_of
from windlass.web.route import PUBLIC, Route

log = logging.getLogger("windlass.web.websub")

_KEY = 200
_ROOM = 10_000
"""What a payload holds beside the document."""
_MOST_SECONDS = 10**9

FeedKey = Annotated[str, Path(min_length=1, max_length=_KEY)]


async def verify_websub(
    request: Request,
    feed: FeedKey,
    *,
    mode: Annotated[str, Query(alias="hub.mode", max_length=20)],
    topic: Annotated[str, Query(alias="hub.topic", max_length=4096)],
    challenge: Annotated[str, Query(alias="hub.challenge", max_length=4096)] = "",
    lease: Annotated[int, Query(alias="hub.lease_seconds", ge=1, le=_MOST_SECONDS)] = int(LEASE.total_seconds()),
) -> PlainTextResponse:
    """Answer a hub that asks whether it was really us; 404 means that it was not."""
    app = context_of(request).app
    known = await _known(app, feed)
    if topic != known.websub_topic:
        raise Refusal(404, "hub.topic: this is not the feed's")
    is_followed = known.next_fetch_at is not None
    feeds = app.feeds
    if mode == "denied":
        await feeds.deny_websub(known.id)
        return PlainTextResponse("noted")
    if mode == "subscribe" and is_followed and known.websub_state in {"pending", "active"}:
        await feeds.verify_websub(known.id, timedelta(seconds=lease))
        return PlainTextResponse(challenge)
    if mode == "unsubscribe" and not is_followed:
        return PlainTextResponse(challenge)
    raise Refusal(404, "hub.mode: this was not asked for")


async def receive_websub(request: Request, feed: FeedKey) -> PlainTextResponse:
    """Take what a hub sends; 410 asks it to stop. Content with a wrong signature is acknowledged and ignored."""
    app = context_of(request).app
    known = await _known(app, feed)
    body = await request.body()
    # Acknowledged all the same, as WebSub has it: no sender learns whether a guess was right.
    if is_signed(known.websub_secret, request.headers.get("x-hub-signature"), body):
        await _take(app, known, body, request.headers.get("content-type", "")[:_KEY])
    else:
        log.warning("content for feed %d was not signed by its hub and is ignored", known.id)
    return PlainTextResponse("taken", status_code=202)


async def check_websub(app: Windlass, path: Mapping[str, str]) -> None:
    """Refuse an address that belongs to no feed with subscribers, before anything of the content is read."""
    if (await _known(app, path["feed"])).next_fetch_at is None:
        raise Refusal(410, "this feed has no subscriber any more")


async def _known(app: Windlass, key: str) -> Feed:
    found = feed_of(key)
    if found is None:
        raise FeedNotFound(key)
    number, token = found
    feed = await app.feeds.get(number)
    if not is_known(feed, token):
        raise FeedNotFound(key)
    return feed


async def _take(app: Windlass, feed: Feed, body: bytes, content_type: str) -> None:
    """See that it is kept, whatever happens to us: in a job, or by the feed's own job where one does not fit or is open."""
    text = base64.b64encode(body).decode()
    if len(text) <= MAX_BYTES - _ROOM:
        payload = {"feedId": str(feed.id), "body": text, "content_type": content_type or None}
        # The publisher of a feed names its hub: one open job for each feed is all that can be made to pile up here.
        job = NewJob(task=CONTENT_TASK, payload=encode_object(payload), subject=str(feed.id), unique_key=str(feed.id))
        if not (await app.enqueue_job(job)).is_duplicate:
            return
    if feed.job_id is not None:
        await app.run_now(feed.job_id)


ROUTES = (
    Route("GET", "/websub/{feed}", PUBLIC, verify_websub, errors=(404,), is_callback=True),
    Route("POST", "/websub/{feed}", PUBLIC, receive_websub, 202, errors=(404, 410), is_callback=True, check=check_websub),
)

"""The nouns beside jobs whose every verb is one transaction; those with longer work have files of their own."""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Any

from windlass.core.access import TOKEN_PREFIX, Minted, NewToken
from windlass.core.blocking import twin_of
from windlass.core.feed import FETCH_TASK, Feed
from windlass.core.item import Item
from windlass.core.settings import Effective, effective
from windlass.store.calls import (
    alert_evaluation,
    alerts,
    chores,
    crawls,
    feeds,
    insights,
    items,
    overview,
    pages,
    reminders,
    runs,
    samples,
    sessions,
    settings,
    signatures,
    sources,
    tokens,
    top,
    workers,
)
from windlass.store.noun import Noun, verb

log = logging.getLogger("windlass.client.feeds")

NOT_FETCHED = "no worker has the pack feeds now; start one with `windlass worker --packs feeds`"
"""Why a feed with subscribers may not be fetched."""
# An item may have 64 KiB, a page half a megabyte.
_ITEMS = 100
_PAGES = 100
_SECRET_BYTES = 32
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Sources(Noun):
    """What `crawl` crawls, by id."""

    upsert, upsert_sync = verb(sources.upsert)
    get, get_sync = verb(sources.get)
    list, list_sync = verb(sources.list_sources)
    delete, delete_sync = verb(sources.delete)
    touch, touch_sync = verb(sources.touch)
    stale, stale_sync = verb(sources.stale)
    count, count_sync = verb(sources.count)


class Reminders(Noun):
    """Mails that are to be sent once a time has come."""

    add, add_sync = verb(reminders.add)
    get, get_sync = verb(reminders.get)
    list, list_sync = verb(reminders.list_reminders)
    delete, delete_sync = verb(reminders.delete)
    count, count_sync = verb(reminders.count)
    enqueue_due, enqueue_due_sync = verb(reminders.enqueue_due)
    prune, prune_sync = verb(reminders.prune)


class Pages(Noun):
    """What crawls have found, each address once for each source."""

    list, list_sync = verb(pages.list_pages)
    search, search_sync = verb(pages.search)
    get, get_sync = verb(pages.get)
    count, count_sync = verb(pages.count)

    async def delete(self, source_id: str) -> int:
        """Delete all pages of a source, in small parts; returns how many there were."""
        total = 0
        while gone := await self._run(pages.delete_some(source_id, _PAGES)):
            total += gone
        return total

    delete_sync = twin_of(delete)


class Crawls(Noun):
    """Where crawls go and have been; pages, counts and cursor change together."""

    begin, begin_sync = verb(crawls.begin)
    next, next_sync = verb(crawls.next_address)
    record, record_sync = verb(crawls.record)
    complete, complete_sync = verb(crawls.complete)


class Feeds(Noun):
    """Feeds, each with one job. With a `connection`, a verb belongs to the caller's transaction on it."""

    get, get_sync = verb(feeds.get)
    find, find_sync = verb(feeds.find)
    list, list_sync = verb(feeds.list_feeds)
    count, count_sync = verb(feeds.count_feeds)
    entries, entries_sync = verb(feeds.list_entries)
    count_entries, count_entries_sync = verb(feeds.count_entries)
    record_fetch, record_fetch_sync = verb(feeds.record_fetch)
    record_failure, record_failure_sync = verb(feeds.record_failure)
    add_entries, add_entries_sync = verb(feeds.add_entries)
    ask_websub, ask_websub_sync = verb(feeds.ask_websub)
    verify_websub, verify_websub_sync = verb(feeds.verify_websub)
    deny_websub, deny_websub_sync = verb(feeds.deny_websub)
    expiring_websub, expiring_websub_sync = verb(feeds.expiring_websub)

    async def subscribe(self, url: str, subscriber: str, connection: Any = None) -> Feed:
        """Subscribe to a feed: its one job is made, or goes on at its next time. Log a warning when no worker would run it."""
        feed = await self._run(feeds.subscribe(url, subscriber), connection)
        if not await self.are_fetched():
            log.warning("feed %d, %s: %s", feed.id, feed.url, NOT_FETCHED)
        return feed

    subscribe_sync = twin_of(subscribe)

    async def unsubscribe(self, feed_id: int, subscriber: str, connection: Any = None) -> Feed:
        """End a subscription, if there is one; the last to leave disables the job. Raises FeedNotFound."""
        return await self._run(feeds.unsubscribe(feed_id, subscriber), connection)

    unsubscribe_sync = twin_of(unsubscribe)

    async def are_fetched(self) -> bool:
        """Whether a worker that runs now has the task that fetches feeds."""
        found = await self._run(workers.list_workers())
        return any(worker.is_online and FETCH_TASK in worker.tasks for worker in found)

    are_fetched_sync = twin_of(are_fetched)


class StoredSettings(Noun):
    """What operators have set; it holds from the next use on, in every process."""

    set, set_sync = verb(settings.set_setting)
    unset, unset_sync = verb(settings.unset_setting)
    all, all_sync = verb(settings.list_settings)

    async def effective(self, env: Mapping[str, str] = _NOTHING) -> Mapping[str, Effective]:
        """Return what every setting is at this moment; `env` is the caller's environment."""
        return effective(await self.all(), env)

    effective_sync = twin_of(effective)


class Workers(Noun):
    """Processes that run jobs."""

    register, register_sync = verb(workers.register)
    seen, seen_sync = verb(workers.seen)
    stopped, stopped_sync = verb(workers.stopped)
    pause, pause_sync = verb(workers.pause)
    resume, resume_sync = verb(workers.resume)
    pulled, pulled_sync = verb(workers.pulled)
    lose, lose_sync = verb(workers.lose)
    look_at_leases, look_at_leases_sync = verb(workers.look_at_leases)
    prune, prune_sync = verb(workers.prune)
    list, list_sync = verb(workers.list_workers)


class Chores(Noun):
    """Upkeep that one instance of many does for each interval."""

    due, due_sync = verb(chores.due)
    done, done_sync = verb(chores.done)
    list, list_sync = verb(chores.list_chores)
    pause, pause_sync = verb(chores.pause)
    resume, resume_sync = verb(chores.resume)


class Runs(Noun):
    """Totals that survive pruning, and minutes with percentiles: exact as soon as a run has ended."""

    totals, totals_sync = verb(runs.totals)
    minutes, minutes_sync = verb(runs.minutes)
    fold, fold_sync = verb(runs.fold_runs)
    prune_minutes, prune_minutes_sync = verb(runs.prune_minutes)
    job, job_sync = verb(runs.job_stats)


class Insights(Noun):
    """Queue statistics; everything that shows numbers reads them here, each answer from one snapshot."""

    summary, summary_sync = verb(insights.summary)
    series, series_sync = verb(insights.read_series)
    scale, scale_sync = verb(insights.scale)
    scrape, scrape_sync = verb(insights.scrape)
    queue, queue_sync = verb(insights.queue)
    scheduler, scheduler_sync = verb(insights.scheduler)
    priorities, priorities_sync = verb(insights.priorities)
    overview, overview_sync = verb(overview.overview)
    top, top_sync = verb(top.top)


class Samples(Noun):
    """How deep the queue was in the last hour, minute by minute."""

    take, take_sync = verb(samples.take)
    record, record_sync = verb(samples.record)


class Alerts(Noun):
    """What is wrong, since when, and what helps."""

    board, board_sync = verb(alerts.read_board)
    history, history_sync = verb(alerts.history)
    silence, silence_sync = verb(alerts.silence)
    unsilence, unsilence_sync = verb(alerts.unsilence)
    evaluate, evaluate_sync = verb(alert_evaluation.evaluate)


class Items(Noun):
    """What workers have found, each once in its collection."""

    add, add_sync = verb(items.add)
    list, list_sync = verb(items.list_items)
    count, count_sync = verb(items.count_items)
    collections, collections_sync = verb(items.list_collections)

    async def export(
        self, collection: str | None = None, *, job_id: int | None = None, after: int = 0, page: int = _ITEMS
    ) -> AsyncIterator[Item]:
        """Go through a whole collection, or all that a job found first, without holding it in memory.

        An item's id is where to go on after it, now or later: what is added meanwhile has a greater one.
        """
        while found := await self.list(collection=collection, job_id=job_id, after=after, limit=page):
            for item in found:
                yield item
            after = found[-1].id


class Tokens(Noun):
    """Credentials of programs; only digests are kept."""

    find, find_sync = verb(tokens.find)
    revoke, revoke_sync = verb(tokens.revoke)
    seen, seen_sync = verb(tokens.seen)
    list, list_sync = verb(tokens.list_tokens)
    count_live, count_live_sync = verb(tokens.count_live)
    count, count_sync = verb(tokens.count)

    async def mint(self, token: NewToken, by: str | None = None) -> Minted:
        """Make a token; its secret is in the answer and nowhere else."""
        secret = f"{TOKEN_PREFIX}{secrets.token_urlsafe(_SECRET_BYTES)}"
        return Minted(await self._run(tokens.mint(token, secret, by)), secret)


class Sessions(Noun):
    """Browsers that logged in."""

    open, open_sync = verb(sessions.open_session)
    find, find_sync = verb(sessions.find)
    close, close_sync = verb(sessions.close)


class Signatures(Noun):
    """Signed requests that were taken, by any process."""

    record, record_sync = verb(signatures.record)
    prune, prune_sync = verb(signatures.prune)

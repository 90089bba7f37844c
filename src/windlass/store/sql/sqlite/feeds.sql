-- name: insert_feed
insert into windlass_feeds (url, created_at, updated_at) values (:url, {now}, {now})
on conflict (url) do nothing returning id

-- name: find_feed
select {feed_columns} from windlass_feeds f where f.url = :url

-- name: get_feed
select {feed_columns} from windlass_feeds f where f.id = :feed_id

-- name: list_feeds
select {feed_columns} from windlass_feeds f where f.id > :after order by f.id limit :limit

-- name: list_subscribed_feeds
select {feed_columns} from windlass_feeds f where f.id in (
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber and unsubscribed_at is null and feed_id > :after order by feed_id limit :limit
) order by f.id

-- name: count_feeds
select count(*) from (select id from windlass_feeds limit :most) as counted

-- name: count_subscribed_feeds
select count(*) from (
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber and unsubscribed_at is null limit :most
) as counted

-- name: upsert_subscription
-- A row says that somebody has come, who was not there: the feed counts one more.
insert into windlass_subscriptions (feed_id, subscriber, created_at) values (:feed_id, :subscriber, {now})
on conflict (feed_id, subscriber) do update set unsubscribed_at = null where windlass_subscriptions.unsubscribed_at is not null
returning feed_id

-- name: end_subscription
update windlass_subscriptions set unsubscribed_at = {now}
where feed_id = :feed_id and subscriber = :subscriber and unsubscribed_at is null
returning feed_id

-- name: leave_feed
update windlass_feeds set subscribers = subscribers - 1 where id = :feed_id returning id

-- name: link_feed
-- From here on the trigger keeps the mirror; what moved the job before knew of no feed.
update windlass_feeds as f set job_id = :job_id, gone_at = null, subscribers = f.subscribers + :added, next_fetch_at = (
    select case when j.state in ('scheduled', 'pending', 'running') and not j.held then j.run_at end
    from windlass_jobs j where j.id = :job_id
), updated_at = case when f.job_id is null then f.updated_at else {now} end
where f.id = :feed_id
returning id

-- name: record_fetch
-- Without a change (304) nothing was said of the feed itself. Another hub means another subscription, with secrets of its own.
update windlass_feeds as f set
    fetch_url = :fetch_url,
    title = case when :is_changed then coalesce(:title, f.title) else f.title end,
    site_url = case when :is_changed then coalesce(:site_url, f.site_url) else f.site_url end,
    etag = case when :is_changed then :etag else coalesce(:etag, f.etag) end,
    last_modified = case when :is_changed then :last_modified
        else coalesce(:last_modified, f.last_modified) end,
    websub_hub = case when :is_changed then :hub else f.websub_hub end,
    websub_topic = case when :is_changed then :topic else f.websub_topic end,
    websub_state = case when {keeps_hub} then f.websub_state end,
    websub_token = case when {keeps_hub} then f.websub_token end,
    websub_secret = case when {keeps_hub} then f.websub_secret end,
    websub_asked_at = case when {keeps_hub} then f.websub_asked_at end,
    websub_expires_at = case when {keeps_hub} then f.websub_expires_at end,
    last_fetched_at = {now}, consecutive_failures = 0, counted_slot_at = :slot_at, last_error = null,
    gone_at = null, updated_at = {now}
where f.id = :feed_id
returning id

-- name: record_failure
-- Counted once for each planned run: a worker that dies after this and before its run ended comes again for the same one.
-- The way begins anew at the address that subscribers gave, with nothing that only the other address would know.
update windlass_feeds as f set
    consecutive_failures = case when f.counted_slot_at is :slot_at
        then max(f.consecutive_failures, 1) else f.consecutive_failures + 1 end,
    counted_slot_at = :slot_at, last_error = :error,
    gone_at = case when :is_gone then coalesce(f.gone_at, {now}) else f.gone_at end,
    etag = case when f.fetch_url is null then f.etag end,
    last_modified = case when f.fetch_url is null then f.last_modified end,
    fetch_url = null, updated_at = {now}
where f.id = :feed_id
returning id

-- name: insert_entries
insert into windlass_entries (feed_id, guid, title, link, author, summary, published_at, created_at, updated_at)
select :feed_id, s.value ->> 'guid', s.value ->> 'title', s.value ->> 'link', s.value ->> 'author', s.value ->> 'summary',
    s.value ->> 'published_us', {now}, {now}
from json_each(:entries) as s where true order by s.key
on conflict (feed_id, guid) do nothing;
select changes()

-- name: update_entries
-- From the document to the table, whatever the planner thinks: the other way each kept entry would read the whole document.
with n as materialized (
    select x.id, s.value as doc from json_each(:entries) as s
    cross join windlass_entries as x on x.feed_id = :feed_id and x.guid = s.value ->> 'guid'
    where (x.title, x.link, x.author, x.summary, x.published_at) is not (
        s.value ->> 'title', s.value ->> 'link', s.value ->> 'author', s.value ->> 'summary', s.value ->> 'published_us'
    )
)
update windlass_entries as e set
    title = n.doc ->> 'title', link = n.doc ->> 'link', author = n.doc ->> 'author', summary = n.doc ->> 'summary',
    published_at = n.doc ->> 'published_us', updated_at = {now}
from n where e.id = n.id
returning id

-- name: trim_entries
delete from windlass_entries where feed_id = :feed_id and id <= (
    select e.id from windlass_entries e where e.feed_id = :feed_id order by e.id desc limit 1 offset :most
)
returning id

-- name: list_entries
select {entry_columns} from windlass_entries e where e.feed_id = :feed_id and e.id < :before
order by e.id desc limit :limit

-- name: count_entries
select count(*) from (select id from windlass_entries where feed_id = :feed_id limit :most) as counted

-- name: ask_websub
-- What is in use stays: the hub may still send by the lease that is being renewed.
update windlass_feeds as f set
    websub_state = case when f.websub_state = 'active' and f.websub_expires_at > {now} then 'active' else 'pending' end,
    websub_token = coalesce(f.websub_token, :token), websub_secret = coalesce(f.websub_secret, :secret),
    websub_asked_at = {now}, updated_at = {now}
where f.id = :feed_id and f.websub_hub is not null
returning id

-- name: verify_websub
update windlass_feeds as f set websub_state = 'active', websub_expires_at = {now} + :lease, updated_at = {now}
where f.id = :feed_id and f.websub_state in ('pending', 'active')
returning id

-- name: deny_websub
update windlass_feeds as f set websub_state = 'denied', websub_expires_at = null, updated_at = {now}
where f.id = :feed_id and f.websub_state in ('pending', 'active')
returning id

-- name: expiring_websub
-- A mirror that is empty belongs to a feed nobody follows. What a hub denied is asked for again now and then.
select {feed_columns} from windlass_feeds f
where f.websub_hub is not null and f.next_fetch_at is not null and f.id > :after
  and (f.websub_expires_at is null or f.websub_expires_at <= {now} + :within)
  and (f.websub_state is not 'denied' or f.websub_asked_at <= {now} - :again)
order by f.id limit :limit

-- name: insert_feed
-- Another transaction that inserts the same address is waited for; its row is then read by the next statement.
insert into windlass_feeds (url, created_at, updated_at) values (:url, {now}, {now})
on conflict (url) do nothing returning id

-- name: find_feed
select {feed_columns} from windlass_feeds f where f.url = :url

-- name: get_feed
select {feed_columns} from windlass_feeds f where f.id = :feed_id

-- name: list_feeds
select {feed_columns} from windlass_feeds f where f.id > :after::bigint order by f.id limit :limit

-- name: list_subscribed_feeds
-- An array, so that no plan joins what one subscriber follows with all feeds there are.
select {feed_columns} from windlass_feeds f where f.id = any(array(
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber::text and unsubscribed_at is null and feed_id > :after::bigint order by feed_id limit :limit
)) order by f.id

-- name: count_feeds
select count(*) from (select id from windlass_feeds limit :most) as counted

-- name: upsert_subscription
-- A returned row is a new subscriber: the feed counts one more.
insert into windlass_subscriptions (feed_id, subscriber, created_at) values (:feed_id, :subscriber::text, {now})
on conflict (feed_id, subscriber) do update set unsubscribed_at = null where windlass_subscriptions.unsubscribed_at is not null
returning feed_id

-- name: end_subscription
update windlass_subscriptions set unsubscribed_at = {now}
where feed_id = :feed_id and subscriber = :subscriber::text and unsubscribed_at is null
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
-- Without a change (304) the answer has nothing about the feed itself. Another hub means another subscription, with secrets of its own.
update windlass_feeds as f set
    fetch_url = :fetch_url::text,
    title = case when :is_changed::boolean then coalesce(:title::text, f.title) else f.title end,
    site_url = case when :is_changed::boolean then coalesce(:site_url::text, f.site_url) else f.site_url end,
    etag = case when :is_changed::boolean then :etag::text else coalesce(:etag::text, f.etag) end,
    last_modified = case when :is_changed::boolean then :last_modified::text
        else coalesce(:last_modified::text, f.last_modified) end,
    websub_hub = case when :is_changed::boolean then :hub::text else f.websub_hub end,
    websub_topic = case when :is_changed::boolean then :topic::text else f.websub_topic end,
    websub_state = case when {keeps_hub} then f.websub_state end,
    websub_token = case when {keeps_hub} then f.websub_token end,
    websub_secret = case when {keeps_hub} then f.websub_secret end,
    websub_asked_at = case when {keeps_hub} then f.websub_asked_at end,
    websub_expires_at = case when {keeps_hub} then f.websub_expires_at end,
    last_fetched_at = {now}, consecutive_failures = 0, counted_slot_at = :slot_at::timestamptz, last_error = null,
    gone_at = null, updated_at = {now}
where f.id = :feed_id
returning id

-- name: list_entries
select {entry_columns} from windlass_entries e where e.feed_id = :feed_id and e.id < :before::bigint
order by e.id desc limit :limit

-- name: count_entries
select count(*) from (select id from windlass_entries where feed_id = :feed_id limit :most) as counted

-- name: ask_websub
-- What is in use stays: the hub may still send by the lease that is being renewed.
update windlass_feeds as f set
    websub_state = case when f.websub_state = 'active' and f.websub_expires_at > {now} then 'active' else 'pending' end,
    websub_token = coalesce(f.websub_token, :token::text), websub_secret = coalesce(f.websub_secret, :secret::text),
    websub_asked_at = {now}, updated_at = {now}
where f.id = :feed_id and f.websub_hub is not null
returning id

-- name: verify_websub
update windlass_feeds as f set websub_state = 'active', websub_expires_at = {now} + :lease::interval, updated_at = {now}
where f.id = :feed_id and f.websub_state in ('pending', 'active')
returning id

-- name: deny_websub
update windlass_feeds as f set websub_state = 'denied', websub_expires_at = null, updated_at = {now}
where f.id = :feed_id and f.websub_state in ('pending', 'active')
returning id

-- name: expiring_websub
-- An empty next_fetch_at belongs to a feed without subscribers. What a hub denied is asked for again now and then.
select {feed_columns} from windlass_feeds f
where f.websub_hub is not null and f.next_fetch_at is not null and f.id > :after::bigint
  and (f.websub_expires_at is null or f.websub_expires_at <= {now} + :within::interval)
  and (f.websub_state is distinct from 'denied' or f.websub_asked_at <= {now} - :again::interval)
order by f.id limit :limit

-- name: record_failure
-- Counted once for each planned run: a worker that dies after this and before its run ended comes again for the same one.
-- The way begins anew at the address that subscribers gave, with nothing that only the other address would know.
update windlass_feeds as f set
    consecutive_failures = case when f.counted_slot_at is not distinct from :slot_at::timestamptz
        then {greatest}(f.consecutive_failures, 1) else f.consecutive_failures + 1 end,
    counted_slot_at = :slot_at::timestamptz, last_error = :error::text,
    gone_at = case when :is_gone::boolean then coalesce(f.gone_at, {now}) else f.gone_at end,
    etag = case when f.fetch_url is null then f.etag end,
    last_modified = case when f.fetch_url is null then f.last_modified end,
    fetch_url = null, updated_at = {now}
where f.id = :feed_id
returning f.id

-- name: count_subscribed_feeds
-- In an order, so that no plan looks for the first of them in the whole table.
select count(*) from (
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber::text and unsubscribed_at is null order by feed_id limit :most
) as counted

-- name: trim_entries
delete from windlass_entries where feed_id = :feed_id and id <= (
    select e.id from windlass_entries e where e.feed_id = :feed_id order by e.id desc limit 1 offset :most
)
returning id

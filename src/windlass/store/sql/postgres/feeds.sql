-- name: count_subscribed_feeds
-- In an order, so that no plan looks for the first of them in the whole table.
select count(*) from (
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber::text and unsubscribed_at is null order by feed_id limit :most
) as counted

-- name: record_failure
-- Counted once for each planned run: a worker that dies after this and before its run ended comes again for the same one.
-- The next fetch begins at the address that subscribers gave, without the validators of another address.
update windlass_feeds f set
    consecutive_failures = case when f.counted_slot_at is not distinct from :slot_at::timestamptz
        then greatest(f.consecutive_failures, 1) else f.consecutive_failures + 1 end,
    counted_slot_at = :slot_at::timestamptz, last_error = :error::text,
    gone_at = case when :is_gone::boolean then coalesce(f.gone_at, {now}) else f.gone_at end,
    etag = case when f.fetch_url is null then f.etag end,
    last_modified = case when f.fetch_url is null then f.last_modified end,
    fetch_url = null, updated_at = {now}
where f.id = :feed_id
returning f.id

-- name: insert_entries
with doc as materialized (
    select s.guid, s.title, s.link, s.author, s.summary, s.published_us
    from json_to_recordset(:entries::json) as s (
        guid text, title text, link text, author text, summary text, published_us bigint
    )
), inserted as (
    insert into windlass_entries (feed_id, guid, title, link, author, summary, published_at, created_at, updated_at)
    select :feed_id, guid, title, link, author, summary, {epoch} + published_us * {us}, {now}, {now} from doc
    on conflict (feed_id, guid) do nothing
    returning id
)
select count(*) from inserted

-- name: update_entries
update windlass_entries e set
    title = s.title, link = s.link, author = s.author, summary = s.summary, published_at = {epoch} + s.published_us * {us},
    updated_at = {now}
from json_to_recordset(:entries::json) as s (
    guid text, title text, link text, author text, summary text, published_us bigint
)
where e.feed_id = :feed_id and e.guid = s.guid
  and (e.title, e.link, e.author, e.summary, e.published_at)
    is distinct from (s.title, s.link, s.author, s.summary, {epoch} + s.published_us * {us})
returning e.id

-- name: trim_entries
delete from windlass_entries where feed_id = :feed_id and id <= (
    select e.id from windlass_entries e where e.feed_id = :feed_id order by e.id desc offset :most limit 1
)
returning id

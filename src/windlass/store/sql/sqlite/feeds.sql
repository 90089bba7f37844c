-- name: count_subscribed_feeds
select count(*) from (
    select feed_id from windlass_subscriptions
    where subscriber = :subscriber and unsubscribed_at is null limit :most
) as counted

-- name: record_failure
-- Counted once for each planned run: a worker that dies after this and before its run ended comes again for the same one.
-- The next fetch begins at the address that subscribers gave, without the validators of another address.
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

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

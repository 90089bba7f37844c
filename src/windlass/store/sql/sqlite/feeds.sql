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

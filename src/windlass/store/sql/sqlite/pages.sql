-- name: known_page
select id, digest from windlass_pages where source_id = :source_id and key = :key

-- name: upsert_page
insert into windlass_pages (
    source_id, key, url, title, text, words, links, etag, last_modified, digest, status, fetched_at, changed_at, created_at
)
values (
    :source_id, :key, :url, :title, :text, :words, :links, :etag, :last_modified, :digest, :http_status, {now}, {now}, {now}
)
on conflict (source_id, key) do update set
    url = excluded.url, title = excluded.title, text = excluded.text, words = excluded.words, links = excluded.links,
    etag = excluded.etag, last_modified = excluded.last_modified, digest = excluded.digest, status = excluded.status,
    fetched_at = {now}, changed_at = {now}
returning id

-- name: touch_page
-- Its words stay, so the index of words is left alone.
update windlass_pages set
    etag = coalesce(:etag, etag), last_modified = coalesce(:last_modified, last_modified), fetched_at = {now}
where source_id = :source_id and key = :key
returning id

-- name: delete_page
delete from windlass_pages where source_id = :source_id and key = :key
returning id

-- name: delete_pages
delete from windlass_pages where id in (
    select id from windlass_pages where source_id = :source_id order by id limit :limit
);
select changes()

-- name: get_page
select p.id, p.source_id, p.url, p.title, p.text, p.status, p.etag, p.last_modified, p.fetched_at, p.changed_at, p.created_at
from windlass_pages p where p.id = :id

-- name: list_pages
select {page_columns} from windlass_pages p where p.id > :after order by p.id limit :limit

-- name: list_source_pages
select {page_columns} from windlass_pages p where p.source_id = :source_id and p.id > :after order by p.id limit :limit

-- name: search_pages
select {page_columns}
from windlass_pages_words cross join windlass_pages p on p.id = windlass_pages_words.rowid
where windlass_pages_words match {asked_words}
    and windlass_pages_words.rowid > :after and (:source_id is null or p.source_id = :source_id)
order by windlass_pages_words.rowid limit :limit

-- name: count_pages
select count(*) from (select 1 from windlass_pages limit :most) as counted

-- name: count_source_pages
select count(*) from (select 1 from windlass_pages where source_id = :source_id limit :most) as counted

-- name: count_found_pages
select count(*) from (
    select 1 from windlass_pages_words cross join windlass_pages p on p.id = windlass_pages_words.rowid
    where windlass_pages_words match {asked_words} and (:source_id is null or p.source_id = :source_id)
    limit :most
) as counted

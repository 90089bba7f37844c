-- name: upsert_source
insert into windlass_sources as s (id, name, url, metadata, created_at, updated_at)
values (:source_id, :name, :url, :metadata::json, {now}, {now})
on conflict (id) do update set
    name = excluded.name, url = excluded.url, metadata = coalesce(excluded.metadata, s.metadata), updated_at = {now}
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: get_source
select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources where id = :source_id

-- name: list_sources
select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
where id > :after_source order by id limit :limit

-- name: delete_source
delete from windlass_sources where id = :source_id
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: count_sources
select count(*) from (select id from windlass_sources limit :most) as counted

-- name: known_page
select id, digest from windlass_pages where source_id = :source_id and key = :key

-- name: upsert_page
insert into windlass_pages (
    source_id, key, url, title, text, words, links, etag, last_modified, digest, status, fetched_at, changed_at, created_at
)
values (
    :source_id, :key, :url, :title, :text, :words, :links, :etag::text, :last_modified::text, :digest, :http_status,
    {now}, {now}, {now}
)
on conflict (source_id, key) do update set
    url = excluded.url, title = excluded.title, text = excluded.text, words = excluded.words, links = excluded.links,
    etag = excluded.etag, last_modified = excluded.last_modified, digest = excluded.digest, status = excluded.status,
    fetched_at = {now}, changed_at = {now}
returning id

-- name: touch_page
-- Its words stay, so the index of words is left alone.
update windlass_pages set
    etag = coalesce(:etag::text, etag), last_modified = coalesce(:last_modified::text, last_modified), fetched_at = {now}
where source_id = :source_id and key = :key
returning id

-- name: delete_page
delete from windlass_pages where source_id = :source_id and key = :key
returning id

-- name: get_page
select p.id, p.source_id, p.url, p.title, p.text, p.status, p.etag, p.last_modified, p.fetched_at, p.changed_at, p.created_at
from windlass_pages p where p.id = :id

-- name: list_pages
select {page_columns} from windlass_pages p where p.id > :after order by p.id limit :limit

-- name: list_source_pages
select {page_columns} from windlass_pages p where p.source_id = :source_id and p.id > :after order by p.id limit :limit

-- name: count_pages
select count(*) from (select 1 from windlass_pages limit :most) as counted

-- name: count_source_pages
select count(*) from (select 1 from windlass_pages where source_id = :source_id limit :most) as counted

-- name: list_job_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.job_id = :job_id and i.id > :after order by i.id limit :limit

-- name: list_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.collection = :collection and i.id > :after order by i.id limit :limit

-- name: list_collections
-- From one name to the next along the index: as many looks as there are names, however many items they have.
with recursive names (name) as (
    select min(collection) from windlass_items where collection > :after_name
    union all
    select (select min(i.collection) from windlass_items i where i.collection > names.name) from names where name is not null
)
select name from names where name is not null limit :limit

-- name: count_items
select count(*) from (select 1 from windlass_items where collection = :collection limit :most) as counted

-- name: count_job_items
select count(*) from (select 1 from windlass_items where job_id = :job_id limit :most) as counted

-- name: next_address
select f.number, f.url, f.depth, p.etag, p.last_modified, p.links
from windlass_frontier f left join windlass_pages p on p.source_id = :source_id and p.key = f.key
where f.job_id = :job_id and f.is_open order by f.number limit 1

-- name: touch_source
update windlass_sources set last_run_at = {greatest}(coalesce(last_run_at, {now}), {now}), updated_at = {now}
where id = :source_id
returning id, name, url, last_run_at, metadata::text, created_at, updated_at

-- name: stale_sources
-- Those that never ran first. Two arms, because the index has them at its end.
(select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
 where last_run_at is null and :after_at::timestamptz is null and id > :after_source::text order by id limit :limit)
union all
(select id, name, url, last_run_at, metadata::text, created_at, updated_at from windlass_sources
 where last_run_at < :ran_before::timestamptz
   and (last_run_at, id) > (coalesce(:after_at::timestamptz, '-infinity'), :after_source::text)
 order by last_run_at, id limit :limit)
limit :limit

-- name: delete_pages
with gone as (
    delete from windlass_pages where id = any(array(
        select id from windlass_pages where source_id = :source_id order by id limit :limit::integer
    ))
    returning id
)
select count(*) from gone

-- name: search_pages
-- Materialized: to avoid sorting what was found, the planner would rather walk through all pages in the order of their ids.
with found as materialized (
    select p.id from windlass_pages p
    where p.search @@ {asked_words}
        and p.id > :after and (:source_id::text is null or p.source_id = :source_id::text)
)
select {page_columns}
from (select id from found order by id limit :limit) as f join windlass_pages p on p.id = f.id order by p.id

-- name: count_found_pages
select count(*) from (
    select 1 from windlass_pages p where p.search @@ {asked_words} and (:source_id::text is null or p.source_id = :source_id::text)
    limit :most
) as counted

-- name: insert_items
-- One writer for each collection at a time, and ids are drawn under the lock, in the order of the request: a reader that sees an item
-- sees all that have smaller ids, so a reader that goes on after the last one misses none. It ends with the transaction.
with alone as materialized (
    select pg_advisory_xact_lock(hashtextextended(:collection::text, 7301946200283))
), doc as materialized (
    select nextval('windlass_items_id_seq') as id, s.key, s.data
    from alone cross join json_to_recordset(:items::json) as s (key text, data json)
), inserted as (
    insert into windlass_items (id, collection, key, job_id, data, created_at) overriding system value
    select id, :collection::text, key, :job_id, data, {now} from doc
    on conflict (collection, key) do nothing
    returning id
)
select count(*) from inserted

-- name: clear_frontier
with gone as (delete from windlass_frontier where job_id = :job_id returning 1) select count(*) from gone

-- name: extend_frontier
-- Only what is new takes of the room that is left.
with added as (
    insert into windlass_frontier (job_id, number, key, url, depth, is_open)
    select :job_id, :last::integer + row_number() over (order by l.place), l.value ->> 'key', l.value ->> 'url', :depth, true
    from json_array_elements(:links::json) with ordinality as l (value, place)
    where not exists (select 1 from windlass_frontier f where f.job_id = :job_id and f.key = l.value ->> 'key')
    order by l.place limit :room::integer
    returning 1
)
select count(*) from added

-- name: close_address
-- Returns whether it was open, or no row where the crawl does not have it.
with seen as materialized (
    select f.number, f.is_open from windlass_frontier f where f.job_id = :job_id and f.key = :key
), closed as (
    update windlass_frontier f set is_open = false from seen where f.job_id = :job_id and f.number = seen.number and seen.is_open
)
select seen.is_open from seen

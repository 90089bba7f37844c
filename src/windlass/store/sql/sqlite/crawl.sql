-- name: stale_sources
-- Those that never ran first. Two arms, so that each begins where the page before it ended.
select id, name, url, last_run_at, metadata, created_at, updated_at from (
    select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources
    where last_run_at is null and :after_at is null and id > :after_source order by id limit :limit
)
union all
select id, name, url, last_run_at, metadata, created_at, updated_at from (
    select id, name, url, last_run_at, metadata, created_at, updated_at from windlass_sources
    where last_run_at < :ran_before and (last_run_at, id) > (coalesce(:after_at, -1 << 62), :after_source)
    order by last_run_at, id limit :limit
)
limit :limit

-- name: delete_pages
delete from windlass_pages where id in (
    select id from windlass_pages where source_id = :source_id order by id limit :limit
);
select changes()

-- name: search_pages
select {page_columns}
from windlass_pages_words cross join windlass_pages p on p.id = windlass_pages_words.rowid
where windlass_pages_words match {asked_words}
    and windlass_pages_words.rowid > :after and (:source_id is null or p.source_id = :source_id)
order by windlass_pages_words.rowid limit :limit

-- name: count_found_pages
select count(*) from (
    select 1 from windlass_pages_words cross join windlass_pages p on p.id = windlass_pages_words.rowid
    where windlass_pages_words match {asked_words} and (:source_id is null or p.source_id = :source_id)
    limit :most
) as counted

-- name: insert_items
insert into windlass_items (collection, key, job_id, data, created_at)
select :collection, s.value ->> 'key', :job_id, s.value -> 'data', {now} from json_each(:items) as s where true order by s.key
on conflict (collection, key) do nothing;
select changes()

-- name: clear_frontier
delete from windlass_frontier where job_id = :job_id;
select changes()

-- name: extend_frontier
-- Only what is new takes of the room that is left.
insert into windlass_frontier (job_id, number, key, url, depth, is_open)
select :job_id, :last + row_number() over (order by l.key), l.value ->> 'key', l.value ->> 'url', :depth, 1
from json_each(:links) as l
where not exists (select 1 from windlass_frontier f where f.job_id = :job_id and f.key = l.value ->> 'key')
order by l.key limit :room;
select changes()

-- name: close_address
-- Returns whether it was open, or no row where the crawl does not have it.
select json_group_array(is_open) as was_open_found from windlass_frontier where job_id = :job_id and key = :key;
update windlass_frontier set is_open = 0 where job_id = :job_id and key = :key and is_open;
select value from json_each(:was_open_found)

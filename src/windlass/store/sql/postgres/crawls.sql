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

-- name: next_address
select f.number, f.url, f.depth, p.etag, p.last_modified, p.links
from windlass_frontier f left join windlass_pages p on p.source_id = :source_id and p.key = f.key
where f.job_id = :job_id and f.is_open order by f.number limit 1

-- name: close_address
-- Says whether it was open, or nothing where the crawl did not know of it.
with seen as materialized (
    select f.number, f.is_open from windlass_frontier f where f.job_id = :job_id and f.key = :key
), closed as (
    update windlass_frontier f set is_open = false from seen where f.job_id = :job_id and f.number = seen.number and seen.is_open
)
select seen.is_open from seen

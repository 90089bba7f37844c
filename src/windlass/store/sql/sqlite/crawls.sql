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

-- name: next_address
select f.number, f.url, f.depth, p.etag, p.last_modified, p.links
from windlass_frontier f left join windlass_pages p on p.source_id = :source_id and p.key = f.key
where f.job_id = :job_id and f.is_open order by f.number limit 1

-- name: close_address
-- Says whether it was open, or nothing where the crawl did not know of it.
select json_group_array(is_open) as was_open_found from windlass_frontier where job_id = :job_id and key = :key;
update windlass_frontier set is_open = 0 where job_id = :job_id and key = :key and is_open;
select value from json_each(:was_open_found)

-- name: insert_items
insert into windlass_items (collection, key, job_id, data, created_at)
select :collection, s.value ->> 'key', :job_id, s.value -> 'data', {now} from json_each(:items) as s where true order by s.key
on conflict (collection, key) do nothing;
select changes()

-- name: list_job_items
select i.id, i.collection, i.key, i.job_id, i.data, i.created_at
from windlass_items i where i.job_id = :job_id and i.id > :after order by i.id limit :limit

-- name: list_items
select i.id, i.collection, i.key, i.job_id, i.data, i.created_at
from windlass_items i where i.collection = :collection and i.id > :after order by i.id limit :limit

-- name: count_items
select count(*) from (select 1 from windlass_items where collection = :collection limit :most) as counted

-- name: count_job_items
select count(*) from (select 1 from windlass_items where job_id = :job_id limit :most) as counted

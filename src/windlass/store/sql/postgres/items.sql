-- name: insert_items
-- Ids are drawn in the order of the request. Inserted in key order: two batches that meet the same keys in different order
-- would wait for each other.
with doc as materialized (
    select nextval('windlass_items_id_seq') as id, s.key, s.data
    from json_to_recordset(:items::json) as s (key text, data json)
), inserted as (
    insert into windlass_items (id, collection, key, job_id, data, created_at) overriding system value
    select id, :collection, key, :job_id, data, {now} from doc order by key
    on conflict (collection, key) do nothing
    returning id
)
select count(*) from inserted

-- name: list_job_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.job_id = :job_id and i.id > :after order by i.id limit :limit

-- name: list_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.collection = :collection and i.id > :after order by i.id limit :limit

-- name: count_items
select count(*) from (select 1 from windlass_items where collection = :collection limit :most) as counted

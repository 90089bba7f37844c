-- name: insert_items
-- One writer for each collection at a time, and ids are drawn under the lock, in the order of the request: whoever sees an item
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

-- name: list_job_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.job_id = :job_id and i.id > :after order by i.id limit :limit

-- name: list_items
select i.id, i.collection, i.key, i.job_id, i.data::text, i.created_at
from windlass_items i where i.collection = :collection and i.id > :after order by i.id limit :limit

-- name: count_items
select count(*) from (select 1 from windlass_items where collection = :collection limit :most) as counted

-- name: count_job_items
select count(*) from (select 1 from windlass_items where job_id = :job_id limit :most) as counted

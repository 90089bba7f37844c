-- name: list_recurring
select j.id from windlass_jobs j where j.cadence is not null and j.closed_at is null and j.id > :after::bigint
order by j.id limit :limit

-- name: set_cadences
-- The jobs are locked and were read after that: nobody can have changed them meanwhile. Their next time stays, unless one is given.
with s as materialized (
    select c.id, c.cadence, c.metadata, c.next_us
    from json_to_recordset(:jobs::json) as c (id bigint, cadence text, metadata text, next_us bigint)
), bodies as (
    update windlass_bodies b set metadata = s.metadata::json from s where b.job_id = s.id
)
update windlass_jobs j set
    cadence = s.cadence, run_at = coalesce({epoch} + s.next_us * {us}, j.run_at),
    slot_at = coalesce({epoch} + s.next_us * {us}, j.slot_at), updated_at = {now}
from s where j.id = s.id
returning j.id

-- name: list_recurring
select id from windlass_jobs indexed by windlass_jobs_recurring
where cadence is not null and closed_at is null and id > :after order by id limit :limit

-- name: set_cadences
-- The transaction has the file to itself. The next time of a job stays, unless one is given.
update windlass_bodies as b set metadata = s.value ->> 'metadata' from json_each(:jobs) as s where b.job_id = s.value ->> 'id';
update windlass_jobs as j set
    cadence = s.value ->> 'cadence', run_at = coalesce(s.value ->> 'next_us', j.run_at),
    slot_at = coalesce(s.value ->> 'next_us', j.slot_at), updated_at = {now}
from json_each(:jobs) as s where j.id = s.value ->> 'id'
returning id

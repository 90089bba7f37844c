-- name: long_histories
-- A page of jobs with more runs than are kept, and which of them may go: from the oldest up to the last that is both beyond
-- the newest :keep and older than :keep_for, at most :most. A range of numbers, so that no gap is left whatever the clock did.
select p.id, p.oldest, coalesce((
    select x.number - 1 from windlass_executions x
    where x.job_id = p.id and x.number between p.oldest and min(p.beyond, p.oldest + :most - 1)
      and x.finished_at >= {now} - :keep_for
    order by x.number limit 1
), min(p.beyond, p.oldest + :most - 1))
from (
    select id, executions - (state = 'running') - :keep as beyond,
        (select min(x.number) from windlass_executions x where x.job_id = windlass_jobs.id) as oldest
    from windlass_jobs indexed by windlass_jobs_histories
    where executions > 1 and executions > :keep and id > :after order by id limit :limit
) as p
order by p.id

-- name: prune_executions
-- Nothing here can become wrong again: a run that is old and beyond the newest stays so. The keys of its reports go with it:
-- those of a job that comes back for ever would otherwise pile up.
delete from windlass_idempotency where (job_id, key) in (
    select i.job_id, i.key from json_each(:runs) as s cross join windlass_executions x
    on x.job_id = s.value ->> 'id' and x.number between s.value ->> 'first' and s.value ->> 'last'
    cross join windlass_idempotency i on i.job_id = x.job_id and i.token = x.token
);
delete from windlass_executions where rowid in (
    select x.rowid from json_each(:runs) as s cross join windlass_executions x
    on x.job_id = s.value ->> 'id' and x.number between s.value ->> 'first' and s.value ->> 'last'
);
select changes()

-- name: old_jobs
select j.id, j.closed_at, {prunable} from windlass_jobs j indexed by windlass_jobs_closed_at
where j.state = :state and j.closed_at < {now} - :keep_for and (j.closed_at, j.id) > (:after_at, :after)
order by j.closed_at, j.id limit :limit

-- name: lock_old_jobs
-- The transaction has the file to itself.
select id from windlass_jobs where id in (select value from json_each(:ids)) order by id

-- name: prune_jobs
delete from windlass_jobs as j
where j.id in (select value from json_each(:ids)) and j.closed_at < {now} - :keep_for and {prunable}
returning id

-- name: prune_parts
delete from windlass_bodies where job_id in (select value from json_each(:ids));
delete from windlass_idempotency where job_id in (select value from json_each(:ids));
delete from windlass_executions where job_id in (select value from json_each(:ids));
select changes()

-- name: prune_letters
delete from windlass_dead_letters where id in (
    select id from windlass_dead_letters where coalesce(closed_at, acknowledged_at) < {now} - :keep_for
    order by coalesce(closed_at, acknowledged_at), id limit :limit
);
select changes()

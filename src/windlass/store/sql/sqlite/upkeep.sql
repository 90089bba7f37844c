-- name: pending_slices
-- Every lane and task with pending work, gated or not: a job behind a pause waits as well.
{pending_heads}
select lane, task from heads where lane is not null
union select lane, task from suspects where lane is not null order by lane, task

-- name: aging_jobs
-- One probe for each priority of the slice and then only what is old: neither the young nor those at the top are read.
-- SQLite nests a cross join as it is written, so the rows come by priority, the highest first.
with recursive levels (priority) as (
    select max(j.priority) from windlass_jobs j
    where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < {aging_top}
    union all
    select (
        select max(j.priority) from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority < levels.priority
    ) from levels where levels.priority is not null
)
select * from (
    select j.id, j.priority from levels cross join windlass_jobs j indexed by windlass_jobs_pending
        on j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority = levels.priority
        and j.run_at < {now} - {aging_patience_us}
    where {aged} > j.priority
    limit :limit
)
union all select * from (
    select j.id, j.priority from windlass_jobs j indexed by windlass_jobs_suspects
    where j.state = 'pending' and j.crashes > 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < {aging_top}
        and j.run_at < {now} - {aging_patience_us} and {aged} > j.priority
    order by j.priority desc, j.run_at, j.id limit :limit
)
order by priority desc limit :limit

-- name: age
-- The formula again, from the row as it is now.
update windlass_jobs as j set priority = {aged}, updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state = 'pending' and j.run_at < {now} - {aging_patience_us}
  and {aged} > j.priority
returning id

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

-- name: fold_counts
-- Nothing to fold: the triggers keep the counts in place.
select 0 where :limit > 0

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
    where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < 100
    union all
    select (
        select max(j.priority) from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority < levels.priority
    ) from levels where levels.priority is not null
)
select * from (
    select j.id, j.priority from levels cross join windlass_jobs j indexed by windlass_jobs_pending
        on j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority = levels.priority
        and j.run_at < {now} - 3600000000
    where {aged} > j.priority
    limit :limit
)
union all select * from (
    select j.id, j.priority from windlass_jobs j indexed by windlass_jobs_suspects
    where j.state = 'pending' and j.crashes > 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < 100
        and j.run_at < {now} - 3600000000 and {aged} > j.priority
    order by j.priority desc, j.run_at, j.id limit :limit
)
order by priority desc limit :limit

-- name: age
-- The formula again, from the row as it is now.
update windlass_jobs as j set priority = {aged}, updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state = 'pending' and j.run_at < {now} - 3600000000
  and {aged} > j.priority
returning id

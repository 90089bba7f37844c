-- name: pending_slices
-- Every lane and task with pending work, gated or not: a job behind a pause waits as well.
{pending_heads}
select lane, task from heads union select lane, task from suspects order by lane, task

-- name: aging_jobs
-- One probe for each priority of the slice and then only what is old: neither the young nor those at the top are read.
with recursive levels as (
    (select j.priority from windlass_jobs j
     where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task
       and ~j.priority >= ~:most::integer and ~j.priority > ~{aging_top}
     order by ~j.priority limit 1)
    union all
    select n.priority from levels cross join lateral (
        select j.priority from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and ~j.priority > ~levels.priority
        order by ~j.priority limit 1
    ) n
)
select id, priority from (
    (select k.id, k.priority from levels cross join lateral (
        select j.id, j.priority from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and ~j.priority = ~levels.priority
          and j.run_at < {now} - {aging_patience_us} * {us} and {aged} > j.priority
        order by j.run_at, j.id limit 10000
    ) k limit :limit)
    union all
    (select j.id, j.priority from windlass_jobs j
     where j.state = 'pending' and j.crashes > 0 and j.lane = :lane and j.task = :task
       and ~j.priority >= ~:most::integer and ~j.priority > ~{aging_top}
       and j.run_at < {now} - {aging_patience_us} * {us} and {aged} > j.priority
     order by ~j.priority, j.run_at, j.id limit :limit)
) as found
order by priority desc limit :limit

-- name: age
-- The formula again, from the row as it is now. What another statement holds is being claimed or changed, and waits its turn.
with s as materialized (
    select value::bigint as id, {unknown} from json_array_elements_text(:ids::json) order by 1
)
update windlass_jobs j set priority = {aged}, updated_at = {now}
where j.ctid = any(array(
    select k.tid from s cross join lateral (
        select w.ctid as tid from windlass_jobs w where w.id = s.id and w.state = 'pending' for update skip locked
    ) as k where {few}
)) and j.run_at < {now} - {aging_patience_us} * {us} and {aged} > j.priority
returning j.id

-- name: long_histories
-- A page of jobs with more runs than are kept, and which of them may go: from the oldest up to the last that is both beyond
-- the newest :keep and older than :keep_for, at most :most. A range of numbers, so that no gap is left whatever the clock did.
with page as materialized (
    select id, executions - case state when 'running' then 1 else 0 end - :keep as beyond from windlass_jobs
    where executions > 1 and executions > :keep and id > :after order by id limit :limit
)
select p.id, o.number, coalesce((
    select x.number - 1 from windlass_executions x
    where x.job_id = p.id and x.number between o.number and least(p.beyond, o.number + :most - 1)
      and x.finished_at >= {now} - :keep_for::interval
    order by x.number limit 1
), least(p.beyond, o.number + :most - 1))
from page p left join lateral (
    select x.number from windlass_executions x where x.job_id = p.id order by x.number limit 1
) o on true
order by p.id

-- name: prune_executions
-- Nothing here can become wrong again: a run that is old and beyond the newest stays so. The keys of its reports go with it:
-- those of a job that comes back for ever would otherwise pile up.
with s as materialized (
    select s.id, s.first, s.last, {unknown}
    from json_to_recordset(:runs::json) as s (id bigint, first integer, last integer) order by s.id
), gone as (
    delete from windlass_executions where ctid = any(array(
        select k.tid from s cross join lateral (
            select x.ctid as tid from windlass_executions x
            where x.job_id = s.id and x.number between s.first and s.last order by x.number for update skip locked
        ) as k where {few}
    )) returning job_id, token
), keys as (
    delete from windlass_idempotency i using gone where i.job_id = gone.job_id and i.token = gone.token
)
select count(*) from gone

-- name: prune_parts
with gone as materialized (
    select array(select value::bigint from json_array_elements_text(:ids::json)) as ids
), bodies as (
    delete from windlass_bodies where job_id = any((select ids from gone)::bigint[])
), keys as (
    delete from windlass_idempotency where job_id = any((select ids from gone)::bigint[])
), runs as (
    delete from windlass_executions where job_id = any((select ids from gone)::bigint[]) returning job_id
)
select count(*) from runs

-- name: prune_letters
with gone as (
    delete from windlass_dead_letters where id = any(array(
        select id from windlass_dead_letters where coalesce(closed_at, acknowledged_at) < {now} - :keep_for::interval
        order by coalesce(closed_at, acknowledged_at), id limit :limit for update skip locked
    )) returning id
)
select count(*) from gone

-- name: fold_counts
-- Taken in key order, so that two processes folding at once cannot deadlock. As an array: a plain subquery may be run again
-- for each row, and would then take more than :limit.
with taken as materialized (
    delete from windlass_count_deltas where id = any(array(
        select id from windlass_count_deltas order by id limit :limit for update skip locked
    )) returning task, lane, state, wait_reason, jobs
), folded as (
    insert into windlass_counts (task, lane, state, wait_reason, jobs)
    select task, lane, state, wait_reason, sum(jobs) from taken group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (task, lane, state, wait_reason) do update set jobs = windlass_counts.jobs + excluded.jobs
)
select count(*) from taken

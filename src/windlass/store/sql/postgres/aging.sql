-- name: pending_slices
-- Every lane and task with pending work, gated or not: a job behind a pause waits as well.
{pending_heads}
select lane, task from heads union select lane, task from suspects order by lane, task

-- name: aging_jobs
-- One probe for each priority of the slice and then only what is old: neither the young nor those at the top are read.
with recursive levels as (
    (select j.priority from windlass_jobs j
     where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < 100
     order by j.priority desc limit 1)
    union all
    select n.priority from levels cross join lateral (
        select j.priority from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority < levels.priority
        order by j.priority desc limit 1
    ) n
)
select id, priority from (
    (select k.id, k.priority from levels cross join lateral (
        select j.id, j.priority from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and j.lane = :lane and j.task = :task and j.priority = levels.priority
          and j.run_at < {now} - interval '1 hour' and {aged} > j.priority
        order by j.run_at, j.id limit 10000
    ) k limit :limit)
    union all
    (select j.id, j.priority from windlass_jobs j
     where j.state = 'pending' and j.crashes > 0 and j.lane = :lane and j.task = :task and j.priority <= :most and j.priority < 100
       and j.run_at < {now} - interval '1 hour' and {aged} > j.priority
     order by j.priority desc, j.run_at, j.id limit :limit)
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
)) and j.run_at < {now} - interval '1 hour' and {aged} > j.priority
returning j.id

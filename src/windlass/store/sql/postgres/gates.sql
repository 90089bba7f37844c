-- name: pause_lane
-- Who paused it first stays named.
insert into windlass_lanes (name, paused_at, paused_by, updated_at) values (:lane, {now}, :principal::text, {now})
on conflict (name) do update set
    paused_at = excluded.paused_at, paused_by = excluded.paused_by, updated_at = excluded.updated_at
where windlass_lanes.paused_at is null
returning name

-- name: resume_lane
update windlass_lanes set paused_at = null, paused_by = null, updated_at = {now} where name = :lane and paused_at is not null
returning name

-- name: get_lane
-- The pause of `*` is every lane's; a lane's own is named first.
select name, paused_at, paused_by from windlass_lanes
where name in (:lane, '*') and (name = :lane or paused_at is not null) order by paused_at is null, name = '*' limit 1

-- name: list_lanes
with counted as (
    select lane, state, sum(jobs)::bigint as jobs from (
        select lane, state, jobs from windlass_counts union all select lane, state, jobs from windlass_count_deltas
    ) as both_halves group by lane, state having sum(jobs) <> 0
), named as (
    select name from windlass_lanes where name <> '*' or paused_at is not null union select lane from counted union select lane from windlass_tasks where is_declared
)
select n.name, coalesce(l.paused_at, every.paused_at), coalesce(l.paused_by, every.paused_by), c.state, c.jobs
from named n left join windlass_lanes l on l.name = n.name left join windlass_lanes every on every.name = '*'
left join counted c on c.lane = n.name
order by n.name, c.state

-- name: pause_task
-- A task that only pull workers know is paused without becoming a known one.
insert into windlass_tasks (name, lane, paused_at, paused_by, is_declared, first_seen_at, seen_at)
values (:task, 'default', {now}, :principal::text, false, {now}, {now})
on conflict (name) do update set paused_at = excluded.paused_at, paused_by = excluded.paused_by
where windlass_tasks.paused_at is null
returning name

-- name: resume_task
update windlass_tasks set paused_at = null, paused_by = null where name = :task and paused_at is not null
returning name

-- name: get_task
select name, paused_at, paused_by from windlass_tasks where name = :task

-- name: move_gates
-- A claim made from an older view of the gates takes nothing.
update windlass_gates set version = version + 1
returning version

-- name: count_leased
-- What a drain waits for: runs, and cancelled ones whose worker has not said that it stopped.
select count(*) from windlass_jobs
where token is not null and (:lane::text is null or lane = :lane::text) and (:task::text is null or task = :task::text)

-- name: list_writers
-- Whoever writes jobs at this moment, a claim among them: the lock on the table is taken before the claim's snapshot and kept
-- until its end.
select distinct virtualtransaction from pg_locks
where locktype = 'relation' and relation = 'windlass_jobs'::regclass and mode = 'RowExclusiveLock' and granted
  and database = (select oid from pg_database where datname = current_database()) and pid is distinct from pg_backend_pid()
  and (:writers::json is null or virtualtransaction in (select json_array_elements_text(:writers::json)))

-- name: pause_lane
-- The first principal that paused it stays recorded.
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
-- What a drain waits for: runs, and cancelled ones whose worker has not reported that it stopped.
select count(*) from windlass_jobs
where token is not null and (:lane::text is null or lane = :lane::text) and (:task::text is null or task = :task::text)

-- name: ensure_breaker
-- Only for one that is about to open: a breaker without a row is closed.
insert into windlass_breakers (name, threshold, open_us, updated_at)
values (:name, :threshold, :open_us, {now})
on conflict (name) do nothing
returning name

-- name: lock_breaker
-- A statement of its own: the one that waits for this lock would see the breaker as it is and the jobs as they were before,
-- take the permit of the probe that has just begun for dead, and let a second one go.
select b.name from windlass_breakers b where b.name = :name for update

-- name: get_breaker
select {breaker_columns} from windlass_breakers b where b.name = :name

-- name: list_breakers
select {breaker_columns} from windlass_breakers b where b.name > :after_name order by b.name limit :limit

-- name: count_breakers
select count(*) from (select 1 from windlass_breakers limit :most) as counted

-- name: add_breaker_event
insert into windlass_breaker_events (breaker, state, reason, job_id, at)
values (:name, :state, :reason, :job_id::bigint, {now})
returning id

-- name: list_breaker_events
select id, breaker, state, reason, job_id, at from windlass_breaker_events
where breaker = :name order by id desc limit :limit

-- name: prune_breaker_events
-- The newest of each stays: it has the time since when the breaker is in its state.
delete from windlass_breaker_events where id in (
    select e.id from windlass_breaker_events e
    where e.at < {now} - :keep_for::interval and exists (
        select 1 from windlass_breaker_events later where later.breaker = e.breaker and later.id > e.id
    )
    order by e.id limit :limit
)
returning id

-- name: holds_lease
select count(*) > 0 from windlass_jobs j where j.id = :job_id and j.token = :token

-- name: breakers_of_run
-- At most one breaker is tried with this job; of the one that gates its task, the options that its code declares are needed to count.
select b.name, b.threshold, b.open_us, null::text as options, 0::bigint as failures from windlass_breakers b
where b.state = 'half_open' and b.probe_job_id = :job_id and b.probe_token = :token
union all
select t.breaker, null, null, t.options::text, coalesce(f.failures, 0) from windlass_tasks t
left join windlass_breaker_failures f on f.breaker = t.breaker
where t.name = :task and t.breaker is not null

-- name: add_breaker_failures
-- Runs that fail at the same time wait for each other here, so that exactly one of them sees the threshold reached.
insert into windlass_breaker_failures (breaker, failures) values (:name, :failures)
on conflict (breaker) do update set failures = windlass_breaker_failures.failures + excluded.failures
returning failures

-- name: clear_breaker_failures
delete from windlass_breaker_failures where breaker = :name returning breaker

-- name: count_breaker_failures
select coalesce(sum(failures), 0)::bigint from windlass_breaker_failures where breaker = :name

-- name: list_tasks
select name, lane, options::text, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name > :after_name order by name limit :limit

-- name: get_known_task
select name, lane, options::text, breaker, is_declared, paused_at, paused_by, first_seen_at, seen_at
from windlass_tasks where name = :name

-- name: knows_task
select count(*) from windlass_tasks where name = :task and is_declared

-- name: count_tasks
select count(*) from (select name from windlass_tasks limit :most) as counted

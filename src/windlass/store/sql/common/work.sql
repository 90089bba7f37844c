-- name: clock
select {now}

-- name: claim
{take}

-- name: claim_suspect
{take}

-- name: claim_any
-- For callers that run one job at a time, and so need no quarantine.
{take}

-- name: register_worker
insert into windlass_workers (
    id, kind, host, pid, version, pools, tasks, started_at, seen_at, place, process_start, app_version
)
values (
    :worker, :kind, :host, :pid, :program, :pools::json, :tasks::json, {now}, {now}, :place::text, :process_start::bigint,
    :app_version::text
)
on conflict (id) do update set
    kind = excluded.kind, host = excluded.host, pid = excluded.pid, version = excluded.version, pools = excluded.pools,
    tasks = excluded.tasks, running = 0, loop_blocks = 0, started_at = excluded.started_at, seen_at = excluded.seen_at,
    stopped_at = null, place = excluded.place, process_start = excluded.process_start,
    app_version = excluded.app_version, paused_at = null, paused_by = null, cpu_percent = null, memory_mb = null
returning id

-- name: record_version
insert into windlass_versions (version, first_seen_at) values (:app_version::text, {now}) on conflict do nothing
returning version

-- name: forget_versions
delete from windlass_versions where first_seen_at < (
    select v.first_seen_at from windlass_versions v order by v.first_seen_at desc limit 1 offset :keep
)
returning version

-- name: see_worker
-- A late heartbeat does not bring back a worker that has reported its stop. `paused_at` is returned as it is: SQLite 3.40 takes
-- `is not null` in what an update returns for true where the table's first column is not null.
update windlass_workers set seen_at = {now}, running = :running, loop_blocks = :loop_blocks,
    cpu_percent = coalesce(:cpu_percent::integer, cpu_percent), memory_mb = coalesce(:memory_mb::integer, memory_mb)
where id = :worker and stopped_at is null
returning id, paused_at

-- name: pause_worker
update windlass_workers set paused_at = {now}, paused_by = :principal::text
where id = :worker and stopped_at is null and paused_at is null
returning id

-- name: resume_worker
update windlass_workers set paused_at = null, paused_by = null
where id = :worker and stopped_at is null and paused_at is not null
returning id

-- name: get_worker
select {worker_columns} from windlass_workers where id = :worker

-- name: stop_worker
update windlass_workers set seen_at = {now}, stopped_at = {now}, running = 0 where id = :worker and stopped_at is null
returning id

-- name: look_at_leases
-- All that has to be asked where nothing can have been lost.
select {now}, {has_leases}, w.id, w.pid, w.process_start
from (select 1) as look left join windlass_workers w on w.place = :place::text and w.stopped_at is null
order by w.id limit :limit

-- name: list_workers
select {worker_columns} from windlass_workers order by seen_at desc, id limit :limit

-- name: list_started
-- Only leases are indexed, and they are few: read once, grouped by the caller.
select worker, id, task, started_at from windlass_jobs where token is not null and started_at is not null
order by id limit :limit

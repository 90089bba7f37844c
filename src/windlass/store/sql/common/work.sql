-- name: clock
select {now}

-- name: claim
{take}

-- name: claim_suspect
{take}

-- name: claim_any
-- For who runs one job at a time, and so needs no quarantine.
{take}

-- name: register_worker
insert into windlass_workers (
    id, kind, host, pid, version, pools, tasks, started_at, seen_at, place, process_start
)
values (:worker, :kind, :host, :pid, :program, :pools::json, :tasks::json, {now}, {now}, :place::text, :process_start::bigint)
on conflict (id) do update set
    kind = excluded.kind, host = excluded.host, pid = excluded.pid, version = excluded.version, pools = excluded.pools,
    tasks = excluded.tasks, running = 0, loop_blocks = 0, started_at = excluded.started_at, seen_at = excluded.seen_at,
    stopped_at = null, place = excluded.place, process_start = excluded.process_start
returning id

-- name: see_worker
-- A late heartbeat does not bring back a worker that said it had stopped.
update windlass_workers set seen_at = {now}, running = :running, loop_blocks = :loop_blocks
where id = :worker and stopped_at is null
returning id

-- name: stop_worker
update windlass_workers set seen_at = {now}, stopped_at = {now}, running = 0 where id = :worker and stopped_at is null
returning id

-- name: list_neighbours
select id, pid, process_start from windlass_workers where place = :place::text and stopped_at is null order by id limit :limit

-- name: list_workers
select id, kind, host, pid, version, pools::text, tasks::text, running, started_at, seen_at, stopped_at,
    stopped_at is null and seen_at > {now} - :offline_after::interval, loop_blocks
from windlass_workers order by seen_at desc, id limit :limit

-- name: list_started
-- Only leases are indexed, and they are few: read once, grouped by the caller.
select worker, id, task, started_at from windlass_jobs where token is not null and started_at is not null
order by id limit :limit

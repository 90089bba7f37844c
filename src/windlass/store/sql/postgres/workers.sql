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

-- name: see_pull_workers
-- They never register; what only a process of ours knows of itself stays empty.
insert into windlass_workers as w (id, kind, host, pid, version, pools, tasks, started_at, seen_at)
select s.id, 'pull', s.host, 0, '', '{}', '[]', {now}, {now}
from json_to_recordset(:batch::json) as s (id text, host text) order by s.id
on conflict (id) do update set host = excluded.host, seen_at = excluded.seen_at, stopped_at = null where w.kind = 'pull'
returning w.id

-- name: stop_worker
update windlass_workers set seen_at = {now}, stopped_at = {now}, running = 0 where id = :worker and stopped_at is null
returning id

-- name: list_neighbours
select id, pid, process_start from windlass_workers where place = :place::text and stopped_at is null order by id limit :limit

-- name: lose_workers
-- Named with the process that is gone: a worker that has come back under the same name is another one.
update windlass_workers w set stopped_at = {now}, running = 0
from json_to_recordset(:batch::json) as s (id text, pid integer, process_start bigint)
where w.id = s.id and w.pid = s.pid and w.process_start = s.process_start and w.place = :place::text and w.stopped_at is null
returning w.id

-- name: list_workers
select id, kind, host, pid, version, pools::text, tasks::text, running, started_at, seen_at, stopped_at,
    stopped_at is null and seen_at > {now} - :offline_after::interval, loop_blocks
from windlass_workers order by seen_at desc, id limit :limit

-- name: list_started
-- Only leases are indexed, and they are few: read once, grouped by the caller.
select worker, id, task, started_at from windlass_jobs where token is not null and started_at is not null
order by id limit :limit

-- name: prune_workers
with gone as (
    delete from windlass_workers where id = any(array(
        select id from windlass_workers where seen_at < {now} - :gone_for::interval
        order by seen_at limit :limit for update skip locked
    )) returning id
), vouchers as (
    -- Kept for a while: a renewal under way may still ask for what was taken back.
    delete from windlass_vouchers where until < {now} - interval '1 hour'
)
select count(*) from gone

-- name: take_chore
-- One instance for each interval. Asked before the insert as well: an upsert locks the row even when it changes nothing.
insert into windlass_chores (name, version, due_at, last_run_at, worker)
select :chore::text, 1, {now} + :every::interval, {now}, :worker::text
where not exists (
    select 1 from windlass_chores c where c.name = :chore and (c.paused_at is not null or c.due_at > {now})
)
on conflict (name) do update set
    version = windlass_chores.version + 1, due_at = excluded.due_at, last_run_at = excluded.last_run_at, worker = excluded.worker
where windlass_chores.paused_at is null and (windlass_chores.due_at is null or windlass_chores.due_at <= {now})
returning name, version, cursor, last_rows, last_error

-- name: end_chore
-- Guarded by the version: a process that was replaced meanwhile changes nothing.
update windlass_chores set last_rows = :rows, last_duration_ms = :duration_ms, last_error = :error::text, cursor = :cursor::text,
    due_at = coalesce({now} + :again::interval, due_at)
where name = :chore and version = :version
returning name

-- name: hasten_chore
-- The new version keeps a round that is under way, and may have read too early, from putting the next one off.
update windlass_chores set version = version + 1, due_at = {now} where name = :chore and due_at is not null
returning name

-- name: list_chores
select name, version, due_at, paused_at, last_run_at, last_rows, last_duration_ms, last_error, worker, cursor
from windlass_chores order by name

-- name: pause_chore
insert into windlass_chores (name, paused_at) values (:chore, {now})
on conflict (name) do update set paused_at = excluded.paused_at where windlass_chores.paused_at is null
returning name

-- name: resume_chore
update windlass_chores set paused_at = null where name = :chore and paused_at is not null
returning name

-- name: prune_logs
delete from windlass_run_logs as l where l.job_id = any(array(
    select o.job_id from windlass_run_logs o
    where not exists (select 1 from windlass_jobs j where j.id = o.job_id and j.token = o.token) limit :limit
)) and not exists (select 1 from windlass_jobs j where j.id = l.job_id and j.token = l.token)
returning job_id

-- name: old_jobs
select j.id, j.closed_at, {prunable} from windlass_jobs j indexed by windlass_jobs_closed_at
where j.state = :state and j.closed_at < {now} - :keep_for::interval and (j.closed_at, j.id) > (:after_at, :after)
order by j.closed_at, j.id limit :limit

-- name: lock_old_jobs
-- In a statement of its own: what follows must see what another transaction that held the row has committed.
select j.id from windlass_jobs j where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by j.id for update skip locked

-- name: prune_jobs
delete from windlass_jobs as j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
  and j.closed_at < {now} - :keep_for::interval and {prunable}
returning id

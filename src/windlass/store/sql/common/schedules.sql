-- name: withdraw_declared
-- Without declared_at, a later declaration knows that it may enable the schedule again.
update windlass_bodies as b set declared_at = null
where b.job_id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
  and b.declared_by = :app and b.declared_at <= {now} - :older_than::interval
returning job_id

-- name: rename_schedule
update windlass_jobs as j set name = :name, updated_at = {now}
where j.id = :id and not exists (select 1 from windlass_jobs o where o.name = :name and o.id <> :id)
returning id

-- name: holder_of_name
select id from windlass_jobs where name = :name

-- name: due_templates
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.state = 'scheduled' and j.spawn and j.run_at <= {now}
order by j.run_at, j.id limit :limit

-- name: advance_template
-- Guarded by the time the caller saw: of any number of processes one moves the template on, and only that one enqueues.
update windlass_jobs as j set
    state = case when :next_at::timestamptz is null then 'cancelled' when j.held then 'paused' else 'scheduled' end,
    wait_reason = case when :next_at::timestamptz is not null then 'recurrence' end,
    run_at = coalesce(:next_at::timestamptz, j.run_at), slot_at = coalesce(:next_slot_at::timestamptz, j.slot_at), held = false,
    closed_at = case when :next_at::timestamptz is null then {now} end,
    paused_at = case when :next_at::timestamptz is not null and j.held then {now} end,
    done_reason = case when :next_at::timestamptz is null then 'ended' end,
    unique_slot = case when :next_at::timestamptz is not null or j.unique_scope = 'forever' then j.unique_slot end,
    completed_runs = j.completed_runs + case when :is_served::boolean then 1 else 0 end,
    started_at = case when :is_served::boolean then {now} else j.started_at end,
    finished_at = case when :is_served::boolean then {now} else j.finished_at end, updated_at = {now}
where j.id = :id and j.state = 'scheduled' and j.spawn and j.run_at = :seen_at::timestamptz
returning id

-- name: unfinished_children
select j.id from windlass_jobs j
where j.parent_id = :parent_id::bigint and (j.closed_at is null or j.token is not null) order by j.id limit 1000

-- name: lock_missed
select j.id, j.cadence, j.slot_at, j.completed_runs from windlass_jobs j
where {missed} and j.run_at < {now} - :missed_after::interval
order by j.run_at, j.id limit :limit for update skip locked

-- name: list_recurring
select j.id from windlass_jobs j indexed by windlass_jobs_recurring where j.cadence is not null and j.closed_at is null and j.id > :after::bigint
order by j.id limit :limit

-- name: stale_declared
-- What an operator paused stays as it is: else a later declaration would enable it, as if only its code had been gone.
select j.id from windlass_bodies b join windlass_jobs j on j.id = b.job_id
where b.declared_by = :app and b.declared_at <= {now} - :older_than::interval
  and j.state in ('scheduled', 'pending', 'running') and not j.held
  and j.name <> all(array(select value from json_array_elements_text(:names::json)))
order by j.id limit 1000

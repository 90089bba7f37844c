-- name: due_templates
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.state = 'scheduled' and j.spawn and j.run_at <= {now}
order by j.run_at, j.id limit :limit

-- name: advance_template
-- Guarded by the time the caller saw: of any number of processes one moves the template on, and only that one enqueues.
update windlass_jobs j set
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
returning j.id

-- name: unfinished_children
select j.id from windlass_jobs j
where j.parent_id = :parent_id::bigint and (j.closed_at is null or j.token is not null) order by j.id limit 1000

-- name: lock_missed
select j.id, j.cadence, j.slot_at, j.completed_runs from windlass_jobs j
where {missed} and j.run_at < {now} - :missed_after::interval
order by j.run_at, j.id limit :limit for update skip locked

-- name: catch_up
-- Of rows locked before. Without a time: nobody can read its rule, so it runs as if by hand.
with moved as (update windlass_jobs j set
    state = case when s.has_ended then 'cancelled' when {epoch} + s.run_us * {us} > {now} then 'scheduled' else 'pending' end,
    wait_reason = case when s.has_ended then null when s.run_us is null then 'operator' else 'recurrence' end,
    run_at = coalesce({epoch} + s.run_us * {us}, j.run_at), slot_at = coalesce({epoch} + s.slot_us * {us}, j.slot_at),
    closed_at = case when s.has_ended then {now} end, done_reason = case when s.has_ended then 'ended' end,
    unique_slot = case when s.has_ended and j.unique_scope <> 'forever' then null else j.unique_slot end,
    held = j.held and not coalesce(s.has_ended, false), priority = j.base_priority, updated_at = {now}
from json_to_recordset(:jobs::json) as s (id bigint, slot_us bigint, run_us bigint, has_ended boolean)
where j.id = s.id and j.state in ('scheduled', 'pending')
returning j.state)
select count(*) filter (where state = 'pending') from moved

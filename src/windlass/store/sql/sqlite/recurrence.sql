-- name: due_templates
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.state = 'scheduled' and j.spawn and j.run_at <= {now}
order by j.run_at, j.id limit :limit

-- name: advance_template
-- Guarded by the time the caller saw: of any number of processes one moves the template on, and only that one enqueues.
update windlass_jobs as j set
    state = case when :next_at is null then 'cancelled' when j.held then 'paused' else 'scheduled' end,
    wait_reason = case when :next_at is not null then 'recurrence' end,
    run_at = coalesce(:next_at, j.run_at), slot_at = coalesce(:next_slot_at, j.slot_at), held = 0,
    closed_at = case when :next_at is null then {now} end,
    paused_at = case when :next_at is not null and j.held then {now} end,
    done_reason = case when :next_at is null then 'ended' end,
    unique_slot = case when :next_at is not null or j.unique_scope = 'forever' then j.unique_slot end,
    completed_runs = j.completed_runs + case when :is_served then 1 else 0 end,
    started_at = case when :is_served then {now} else j.started_at end,
    finished_at = case when :is_served then {now} else j.finished_at end, updated_at = {now}
where j.id = :id and j.state = 'scheduled' and j.spawn and j.run_at = :seen_at
returning id

-- name: unfinished_children
select id from windlass_jobs
where parent_id = :parent_id and (closed_at is null or token is not null) order by id limit 1000

-- name: lock_missed
select j.id, j.cadence, j.slot_at, j.completed_runs from windlass_jobs j
where {missed} and j.run_at < {now} - :missed_after
order by j.run_at, j.id limit :limit

-- name: catch_up
-- Of rows read in this transaction. Without a time: nobody can read its rule, so it runs as if by hand.
update windlass_jobs as j set
    state = case when s.value ->> 'has_ended' then 'cancelled' when s.value ->> 'run_us' > {now} then 'scheduled'
        else 'pending' end,
    wait_reason = case when s.value ->> 'has_ended' then null when s.value ->> 'run_us' is null then 'operator'
        else 'recurrence' end,
    run_at = coalesce(s.value ->> 'run_us', j.run_at), slot_at = coalesce(s.value ->> 'slot_us', j.slot_at),
    closed_at = case when s.value ->> 'has_ended' then {now} end,
    done_reason = case when s.value ->> 'has_ended' then 'ended' end,
    unique_slot = case when s.value ->> 'has_ended' and j.unique_scope <> 'forever' then null else j.unique_slot end,
    held = j.held and not coalesce(s.value ->> 'has_ended', 0), priority = j.base_priority, updated_at = {now}
from json_each(:jobs) as s
where j.id = s.value ->> 'id' and j.state in ('scheduled', 'pending');
select count(*) from json_each(:jobs) as s join windlass_jobs j on j.id = s.value ->> 'id' where j.state = 'pending'

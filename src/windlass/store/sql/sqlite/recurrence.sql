-- name: due_templates
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.state = 'scheduled' and j.spawn and j.run_at <= {now}
order by j.run_at, j.id limit :limit

-- name: advance_template
-- Guarded by the time the caller saw: of any number of processes one moves the template on, and only that one enqueues.
update windlass_jobs as j set
    state = case when :next_at is null then 'cancelled' when j.held then 'paused' else 'scheduled' end,
    wait_reason = case when :next_at is not null then 'recurrence' end,
    run_at = coalesce(:next_at, j.run_at), slot_at = coalesce(:next_at, j.slot_at), held = 0,
    closed_at = case when :next_at is null then {now} end,
    paused_at = case when :next_at is not null and j.held then {now} end,
    done_reason = case when :next_at is null then 'ended' end,
    unique_slot = case when :next_at is not null or j.unique_scope = 'forever' then j.unique_slot end,
    completed_runs = j.completed_runs + 1, started_at = {now}, finished_at = {now}, updated_at = {now}
where j.id = :id and j.state = 'scheduled' and j.spawn and j.run_at = :seen_at
returning id

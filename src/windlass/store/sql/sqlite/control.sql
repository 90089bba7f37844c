-- name: lock_jobs
-- The transaction has the file to itself.
select id from windlass_jobs where id in (select value from json_each(:ids)) order by id

-- name: cancel
-- Wins at once. A running job keeps its lease and its unique slot until its worker says it has stopped, or the lease ends.
insert into windlass_executions (
    job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, error
)
select id, executions, attempt, token, slot_at, worker, started_at, max({now}, started_at),
    max(0, (started_at - run_at) / 1000), 'cancelled', 'cancelled', :reason
from windlass_jobs
where id in (select value from json_each(:ids)) and state = 'running' and started_at is not null;
update windlass_jobs as j set
    state = 'cancelled', wait_reason = null, closed_at = {now}, paused_at = null, held = 0, stop_requested = 0,
    rerun_at = null, rerun_slot_at = null, done_reason = 'cancelled',
    last_error = coalesce(:reason, j.last_error), last_error_at = case when :reason is null then j.last_error_at else {now} end,
    finished_at = case when j.state = 'running' and j.started_at is not null then max({now}, j.started_at)
        else j.finished_at end,
    executions = j.executions - (j.state = 'running' and j.started_at is null),
    attempt = j.attempt - (j.state = 'running' and j.started_at is null),
    unique_slot = case when j.unique_scope = 'forever' or j.state = 'running' then j.unique_slot end, updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state in ('scheduled', 'pending', 'paused', 'running')
returning id

-- name: stop_run
update windlass_jobs as j set stop_requested = 1, updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state = 'running' and j.cadence is not null
returning id

-- name: pause
update windlass_jobs as j set state = 'paused', paused_at = {now}, held = 0, updated_at = {now}
where j.id in (select value from json_each(:ids))
  and (j.state = 'scheduled' or j.state = 'pending' and j.cadence is not null)
returning id

-- name: resume
-- A recurring job counts anew from now: the caller has computed its next time.
update windlass_jobs as j set
    state = 'scheduled', paused_at = null,
    run_at = coalesce(s.value ->> 'next_us', j.run_at), slot_at = coalesce(s.value ->> 'slot_us', j.slot_at),
    wait_reason = case when s.value ->> 'next_us' is null then j.wait_reason else 'recurrence' end,
    attempt = case when s.value ->> 'next_us' is null then j.attempt else 0 end, updated_at = {now}
from json_each(:jobs) as s where j.id = s.value ->> 'id' and j.state = 'paused'
returning id

-- name: disable
update windlass_jobs as j set
    state = case when j.state = 'running' then j.state else 'paused' end,
    paused_at = case when j.state = 'running' then null else coalesce(j.paused_at, {now}) end,
    held = j.state = 'running', updated_at = {now}
where j.id in (select value from json_each(:ids))
  and (j.state in ('scheduled', 'paused', 'running') or j.state = 'pending' and j.cadence is not null)
returning id

-- name: enable
update windlass_jobs as j set
    state = case when j.state = 'paused' then 'scheduled' else j.state end, paused_at = null, held = 0, updated_at = {now}
where j.id in (select value from json_each(:ids))
  and j.state in ('scheduled', 'pending', 'paused', 'running')
returning id

-- name: run_now
-- A paused job runs once and is paused again; a running one runs once more after its run.
update windlass_jobs as j set
    state = case when j.state = 'paused' or j.spawn then 'scheduled' when j.state = 'running' then j.state else 'pending' end,
    wait_reason = case when j.state <> 'running' then 'operator' end,
    run_at = case when j.state = 'running' then j.run_at else min(j.run_at, {now}) end,
    rerun_at = case when j.state = 'running' then {now} end,
    rerun_slot_at = case when j.state = 'running' then j.rerun_slot_at end,
    held = j.held or j.state = 'paused', paused_at = null, updated_at = {now}
where j.id in (select value from json_each(:ids))
  and j.state in ('scheduled', 'pending', 'paused', 'running')
returning id

-- name: retry
-- A fresh start. Of several jobs with one key only the first comes back, and none while another job holds the key.
update windlass_dead_letters set closed_at = {now}, closed_reason = :closed_reason
where closed_at is null and job_id in ({retriable});
update windlass_jobs as j set
    state = case when j.spawn then 'scheduled' else 'pending' end, wait_reason = 'operator', run_at = {now}, attempt = 0,
    crashes = 0, closed_at = null, priority = j.base_priority, unique_slot = j.unique_key, done_reason = null, updated_at = {now}
where j.id in ({retriable})
returning id

-- name: holders_of
select j.id, o.id from windlass_jobs j
join windlass_jobs o on o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
where j.id in (select value from json_each(:ids))

-- name: edit
-- Only a new cadence moves the next run; during a run it takes effect when the run ends.
update windlass_bodies set
    payload = coalesce(:payload, payload), metadata = coalesce(:metadata, metadata),
    description = coalesce(:description, description)
where (:payload is not null or :metadata is not null or :description is not null) and job_id in (
    select j.id from windlass_jobs j
    where j.id = :id and j.state not in ('completed', 'cancelled')
      and (:cadence is null or j.cadence is not null)
      and (:max_attempts is null or j.state = 'failed' or {enough})
);
update windlass_jobs as j set
    priority = coalesce(:priority, j.priority), base_priority = coalesce(:priority, j.base_priority),
    max_attempts = coalesce(:max_attempts, j.max_attempts), retry = coalesce(:retry, j.retry),
    timeout_us = coalesce(:timeout_us, j.timeout_us), cadence = coalesce(:cadence, j.cadence),
    run_at = case when j.state in ('scheduled', 'pending', 'paused') then coalesce(:next_at, j.run_at) else j.run_at end,
    slot_at = case when j.state in ('scheduled', 'pending', 'paused') then coalesce(:next_at, j.slot_at) else j.slot_at end,
    state = case when :next_at is not null and j.state = 'pending' then 'scheduled' else j.state end,
    wait_reason = case when :next_at is not null and j.wait_reason is not null then 'recurrence' else j.wait_reason end,
    attempt = case when :next_at is not null and j.wait_reason is not null then 0 else j.attempt end,
    rerun_at = case when j.state = 'running' then coalesce(min(j.rerun_at, :next_at), j.rerun_at, :next_at) end,
    rerun_slot_at = case when j.state = 'running' then coalesce(:next_at, j.rerun_slot_at) end,
    updated_at = {now}
where j.id = :id and j.state not in ('completed', 'cancelled')
  and (:cadence is null or j.cadence is not null)
  and (:max_attempts is null or j.state = 'failed' or {enough})
returning id

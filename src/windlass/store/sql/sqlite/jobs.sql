-- name: cancel
-- Wins at once. A running job keeps its lease and its unique slot until its worker reports that it has stopped, or the lease ends.
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
where j.id in (select value from json_each(:ids)) and {may_cancel}
returning id

-- name: resume
-- A recurring job counts anew from now: the caller has computed its next time.
update windlass_jobs as j set
    state = 'scheduled', paused_at = null,
    run_at = coalesce(s.value ->> 'next_us', j.run_at), slot_at = coalesce(s.value ->> 'slot_us', j.slot_at),
    wait_reason = case when s.value ->> 'next_us' is null then j.wait_reason else 'recurrence' end,
    attempt = case when s.value ->> 'next_us' is null then j.attempt else 0 end, updated_at = {now}
from json_each(:jobs) as s where j.id = s.value ->> 'id' and {may_resume}
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

-- name: edit
-- Only a new cadence moves the next run; during a run it takes effect when the run ends.
update windlass_bodies set
    payload = coalesce(:payload, payload), metadata = coalesce(:metadata, metadata),
    description = coalesce(:description, description)
where (:payload is not null or :metadata is not null or :description is not null) and job_id in (
    select j.id from windlass_jobs j
    where j.id = :id and {may_edit}
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
where j.id = :id and {may_edit}
  and (:cadence is null or j.cadence is not null)
  and (:max_attempts is null or j.state = 'failed' or {enough})
returning id

-- name: override
-- A revoked run gives its attempt back unless the job ends here; one that had not started gives its execution number back too.
-- The update comes last, because it takes away what the others read.
insert into windlass_executions (
    job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason
)
select id, executions, attempt, token, slot_at, worker, started_at, max({now}, started_at),
    max(0, (started_at - run_at) / 1000), 'cancelled', 'stopped'
from windlass_jobs where id in ({overridable}) and state = 'running' and started_at is not null;
update windlass_dead_letters set closed_at = {now}, closed_reason = 'overridden'
where :state <> 'failed' and closed_at is null
  and job_id in (select id from windlass_jobs where id in ({overridable}) and state = 'failed');
update windlass_jobs as j set
    state = :state, wait_reason = case when :state = 'pending' then 'operator' end,
    priority = case when :state = 'pending' then j.base_priority else j.priority end,
    run_at = case when :state = 'pending' then {now} else j.run_at end,
    attempt = case
        when :state = 'pending' then 0
        when :state <> 'running' then j.attempt - (j.state = 'running' and j.started_at is null)
        when j.state in ('completed', 'failed', 'cancelled') then 1
        else j.attempt + (j.state <> 'running')
    end,
    executions = j.executions - (j.state = 'running' and j.started_at is null) + (:state = 'running'),
    crashes = case when :state = 'pending' then 0 else j.crashes end,
    token = case when :state = 'running' then :token end, worker = case when :state = 'running' then :worker end,
    pull_id = null, claimed_at = case when :state = 'running' then {now} else j.claimed_at end,
    lease_expires_at = case when :state = 'running' then {now} + :lease end,
    started_at = case when :state = 'running' then {now} else j.started_at end,
    finished_at = case when j.state = 'running' and j.started_at is not null then max({now}, j.started_at)
        else j.finished_at end,
    closed_at = case when :state in ('completed', 'failed') then {now} end, paused_at = null,
    held = j.held and :state in ('pending', 'running'), stop_requested = 0, rerun_at = null, rerun_slot_at = null,
    unique_slot = case
        when :state = 'pending' or :state = 'running' and j.unique_scope <> 'pending' then j.unique_key
        when j.unique_scope = 'forever' then j.unique_slot
    end,
    last_error = case when :state <> 'completed' then j.last_error end,
    last_error_at = case when :state <> 'completed' then j.last_error_at end,
    done_reason = case when :state in ('completed', 'failed') then 'overridden' end, updated_at = {now}
where j.id in ({overridable})
returning id

-- name: delete_jobs
-- Items stay: they belong to their collection.
delete from windlass_bodies where job_id in ({deletable});
delete from windlass_executions where job_id in ({deletable});
delete from windlass_dead_letters where job_id in ({deletable});
delete from windlass_idempotency where job_id in ({deletable});
delete from windlass_jobs where id in ({deletable}) returning id

-- name: postpone
update windlass_jobs as j set
    state = 'scheduled', wait_reason = 'retry', run_at = {now} + (s.value ->> 'delay_us'), priority = j.base_priority,
    last_error = :error, last_error_at = {now}, updated_at = {now}
from json_each(:jobs) as s
where j.id = s.value ->> 'id' and j.state = 'pending'
returning id

-- name: bury
insert into windlass_dead_letters (job_id, task, lane, original_job, error, details, fingerprint, first_died_at, died_at)
select j.id, j.task, j.lane, {original_job}, :error,
    json_object('type', :error_type, 'attempt', j.attempt, 'execution', j.executions),
    (select value from json_each(:fingerprints) where key = j.task), {now}, {now}
from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id in (select value from json_each(:ids)) and {may_bury}
on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
    original_job = excluded.original_job, error = excluded.error, details = excluded.details,
    fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = deaths + 1,
    version = case when windlass_dead_letters.fingerprint = excluded.fingerprint then windlass_dead_letters.version end;
update windlass_jobs as j set
    state = 'failed', wait_reason = null, closed_at = {now}, held = 0,
    unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
    last_error = :error, last_error_at = {now}, done_reason = 'buried', updated_at = {now}
where j.id in (select value from json_each(:ids)) and {may_bury}
returning id

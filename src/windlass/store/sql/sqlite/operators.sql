-- name: boost
-- Never down: a priority above the ceiling stays.
update windlass_jobs as j set
    priority = max(j.priority, min(:most, j.priority + :amount)),
    base_priority = max(j.base_priority, min(:most, j.base_priority + :amount)), updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state not in ('completed', 'cancelled')
returning id

-- name: set_priority
update windlass_jobs as j set priority = :priority, base_priority = :priority, updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state not in ('completed', 'cancelled')
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

-- name: buriable
select id, task from windlass_jobs
where id in (select value from json_each(:ids)) and state in ('pending', 'scheduled') order by id

-- name: postponable
select id, retry, attempt from windlass_jobs
where id in (select value from json_each(:ids)) and state = 'pending' order by id

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
where j.id in (select value from json_each(:ids)) and j.state in ('pending', 'scheduled')
on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
    original_job = excluded.original_job, error = excluded.error, details = excluded.details,
    fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = deaths + 1;
update windlass_jobs as j set
    state = 'failed', wait_reason = null, closed_at = {now}, held = 0,
    unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
    last_error = :error, last_error_at = {now}, done_reason = 'buried', updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state in ('pending', 'scheduled')
returning id

-- name: leased
-- As `lapsed`, of jobs by number and whenever their lease ends.
select id, task, lane, '{}', {claimed_rest}, started_at, stop_requested, state = 'cancelled'
from windlass_jobs where id in (select value from json_each(:ids)) and token is not null
order by id

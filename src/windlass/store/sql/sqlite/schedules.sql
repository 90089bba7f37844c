-- name: redefine
-- A schedule becomes what its code declares. Only a new cadence moves the next run; during a run it takes effect when the run ends.
update windlass_bodies set
    payload = :payload, metadata = :metadata, description = :description,
    declared_by = coalesce(:declared_by, declared_by),
    declared_at = case when :declared_by is null then declared_at else {now} end
where job_id = :id;
update windlass_jobs as j set
    lane = :lane, priority = case when j.base_priority = :priority then j.priority else :priority end, base_priority = :priority,
    max_attempts = case when :max_attempts is null or j.closed_at is not null or {enough}
        then :max_attempts else j.max_attempts end,
    retry = :retry, timeout_us = :timeout_us, cadence = :cadence, child_key = :child_key, subject = :subject,
    run_at = case when j.wait_reason is not null then coalesce(:next_at, j.run_at) else j.run_at end,
    slot_at = case when j.wait_reason is not null then coalesce(:next_slot_at, j.slot_at) else j.slot_at end,
    state = case when :next_at is not null and j.state = 'pending' then 'scheduled' else j.state end,
    wait_reason = case when :next_at is not null and j.wait_reason is not null then 'recurrence' else j.wait_reason end,
    attempt = case when :next_at is not null and j.wait_reason is not null then 0 else j.attempt end,
    rerun_at = case when j.state = 'running' then coalesce(min(j.rerun_at, :next_at), j.rerun_at, :next_at) end,
    rerun_slot_at = case when j.state = 'running' then coalesce(:next_slot_at, j.rerun_slot_at) end,
    updated_at = {now}
where j.id = :id
returning id

-- name: begin_anew
update windlass_dead_letters set closed_at = {now}, closed_reason = 'retried'
where closed_at is null and job_id = :id and exists (
    select 1 from windlass_jobs j
    where j.id = :id and j.state in ('failed', 'cancelled') and j.token is null and (j.unique_key is null or not exists (
        select 1 from windlass_jobs o where o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
    ))
);
update windlass_jobs as j set
    state = case when j.spawn or :next_at > {now} then 'scheduled' else 'pending' end,
    wait_reason = 'recurrence', run_at = :next_at, slot_at = :next_slot_at, attempt = 0, crashes = 0, consecutive_failures = 0,
    closed_at = null, priority = j.base_priority, unique_slot = j.unique_key, done_reason = null, updated_at = {now}
where j.id = :id and j.state in ('failed', 'cancelled') and j.token is null and (j.unique_key is null or not exists (
    select 1 from windlass_jobs o where o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
))
returning id

-- name: touch_declared
-- Workers that start together only read.
update windlass_bodies set declared_at = {now}
where declared_by = :app and declared_at < {now} - 60000000
  and job_id in (select id from windlass_jobs where name in (select value from json_each(:names)));
select j.name from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.name in (select value from json_each(:names)) and b.declared_by = :app and b.declared_at is not null order by j.name

-- name: catch_up
-- Of rows read in this transaction. Without a time its rule cannot be read, so it runs as if by hand.
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

-- name: set_cadences
-- The transaction has the file to itself. The next time of a job stays, unless one is given.
update windlass_bodies as b set metadata = s.value ->> 'metadata' from json_each(:jobs) as s where b.job_id = s.value ->> 'id';
update windlass_jobs as j set
    cadence = s.value ->> 'cadence', run_at = coalesce(s.value ->> 'next_us', j.run_at),
    slot_at = coalesce(s.value ->> 'next_us', j.slot_at), updated_at = {now}
from json_each(:jobs) as s where j.id = s.value ->> 'id'
returning id

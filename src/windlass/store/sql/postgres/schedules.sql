-- name: redefine
-- A schedule becomes what its code declares. Only a new cadence moves the next run; during a run it takes effect when the run ends.
with changed as (
    update windlass_jobs j set
        lane = :lane, priority = case when j.base_priority = :priority then j.priority else :priority end,
        base_priority = :priority,
        max_attempts = case when :max_attempts::integer is null or j.closed_at is not null or {enough}
            then :max_attempts::integer else j.max_attempts end,
        retry = :retry, timeout_us = :timeout_us::bigint, cadence = :cadence, child_key = :child_key::text, subject = :subject::text,
        run_at = case when j.wait_reason is not null then coalesce(:next_at::timestamptz, j.run_at) else j.run_at end,
        slot_at = case when j.wait_reason is not null then coalesce(:next_slot_at::timestamptz, j.slot_at) else j.slot_at end,
        state = case when :next_at::timestamptz is not null and j.state = 'pending' then 'scheduled' else j.state end,
        wait_reason = case when :next_at::timestamptz is not null and j.wait_reason is not null then 'recurrence' else j.wait_reason end,
        attempt = case when :next_at::timestamptz is not null and j.wait_reason is not null then 0 else j.attempt end,
        rerun_at = case when j.state = 'running' then least(j.rerun_at, :next_at::timestamptz) end,
        rerun_slot_at = case when j.state = 'running' then coalesce(:next_slot_at::timestamptz, j.rerun_slot_at) end,
        updated_at = {now}
    where j.id = :id
    returning j.id
), bodies as (
    update windlass_bodies b set
        payload = :payload::json, metadata = :metadata::json, description = :description::text,
        declared_by = coalesce(:declared_by::text, b.declared_by),
        declared_at = case when :declared_by::text is null then b.declared_at else {now} end
    where b.job_id in (select id from changed)
)
select id from changed

-- name: begin_anew
with c as materialized (
    select j.id from windlass_jobs j
    where j.id = :id and j.state in ('failed', 'cancelled') and j.token is null and (j.unique_key is null or not exists (
        select 1 from windlass_jobs o where o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
    ))
), letters as (
    update windlass_dead_letters d set closed_at = {now}, closed_reason = 'retried'
    where d.closed_at is null and d.job_id in (select id from c)
), changed as (
    update windlass_jobs j set
        state = case when j.spawn or :next_at::timestamptz > {now} then 'scheduled' else 'pending' end,
        wait_reason = 'recurrence', run_at = :next_at::timestamptz, slot_at = :next_slot_at::timestamptz, attempt = 0, crashes = 0,
        consecutive_failures = 0, closed_at = null, priority = j.base_priority, unique_slot = j.unique_key, done_reason = null,
        updated_at = {now}
    from c where j.id = c.id
    returning j.id
)
select id from changed

-- name: touch_declared
-- Workers that start together only read.
with t as (
    update windlass_bodies b set declared_at = {now}
    from windlass_jobs j
    where b.declared_by = :app and b.declared_at < {now} - interval '1 minute' and j.id = b.job_id
      and j.name = any(array(select json_array_elements_text(:names::json)))
)
select j.name from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.name = any(array(select json_array_elements_text(:names::json))) and b.declared_by = :app and b.declared_at is not null
order by j.name

-- name: catch_up
-- Of rows locked before. Without a time its rule cannot be read, so it runs as if by hand.
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

-- name: set_cadences
-- The jobs are locked and were read after that: no other transaction can have changed them meanwhile. Their next time stays, unless one is given.
with s as materialized (
    select c.id, c.cadence, c.metadata, c.next_us
    from json_to_recordset(:jobs::json) as c (id bigint, cadence text, metadata text, next_us bigint)
), bodies as (
    update windlass_bodies b set metadata = s.metadata::json from s where b.job_id = s.id
)
update windlass_jobs j set
    cadence = s.cadence, run_at = coalesce({epoch} + s.next_us * {us}, j.run_at),
    slot_at = coalesce({epoch} + s.next_us * {us}, j.slot_at), updated_at = {now}
from s where j.id = s.id
returning j.id

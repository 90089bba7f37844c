-- name: lock_jobs
-- Before a read that a decision hangs on; in id order, as everywhere.
select j.id from windlass_jobs j where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by j.id for update

-- name: cancel
-- Computed from the locked rows alone: the snapshot's row may be older, and mixing the two breaks the checks.
-- Wins at once. A running job keeps its lease and its unique slot until its worker says it has stopped, or the lease ends.
with c as materialized (
    select j.id, j.state, j.started_at, j.executions, j.attempt, j.token, j.worker, j.slot_at, j.run_at
    from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and j.state in ('scheduled', 'pending', 'paused', 'running')
    order by j.id for update of j
), history as (
    insert into windlass_executions (
        job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, error
    )
    select id, executions, attempt, token, slot_at, worker, started_at, greatest({now}, started_at),
        greatest(0, floor(extract(epoch from started_at - run_at) * 1000))::bigint, 'cancelled', 'cancelled', :reason::text
    from c where state = 'running' and started_at is not null
), changed as (
    update windlass_jobs j set
        state = 'cancelled', wait_reason = null, closed_at = {now}, paused_at = null, held = false, stop_requested = false,
        rerun_at = null, rerun_slot_at = null, done_reason = 'cancelled', last_error = coalesce(:reason::text, j.last_error),
        last_error_at = case when :reason::text is null then j.last_error_at else {now} end,
        finished_at = case when c.state = 'running' and c.started_at is not null then greatest({now}, c.started_at)
            else j.finished_at end,
        executions = case when c.state = 'running' and c.started_at is null then c.executions - 1 else c.executions end,
        attempt = case when c.state = 'running' and c.started_at is null then c.attempt - 1 else c.attempt end,
        unique_slot = case when j.unique_scope = 'forever' or c.state = 'running' then j.unique_slot end, updated_at = {now}
    from c where j.id = c.id
    returning j.id
)
select id from changed

-- name: stop_run
{chosen}
update windlass_jobs j set stop_requested = true, updated_at = {now}
from c where j.id = c.id and j.state = 'running' and j.cadence is not null
returning j.id

-- name: pause
{chosen}
update windlass_jobs j set state = 'paused', paused_at = {now}, held = false, updated_at = {now}
from c where j.id = c.id
  and (j.state = 'scheduled' or j.state = 'pending' and j.cadence is not null)
returning j.id

-- name: resume
-- A recurring job counts anew from now: the caller has computed its next time.
update windlass_jobs j set
    state = 'scheduled', paused_at = null,
    run_at = coalesce({epoch} + s.next_us * {us}, j.run_at), slot_at = coalesce({epoch} + s.slot_us * {us}, j.slot_at),
    wait_reason = case when s.next_us is null then j.wait_reason else 'recurrence' end,
    attempt = case when s.next_us is null then j.attempt else 0 end, updated_at = {now}
from json_to_recordset(:jobs::json) as s (id bigint, next_us bigint, slot_us bigint)
where j.id = s.id and j.state = 'paused'
returning j.id

-- name: disable
{chosen}
update windlass_jobs j set
    state = case when j.state = 'running' then j.state else 'paused' end,
    paused_at = case when j.state = 'running' then null else coalesce(j.paused_at, {now}) end,
    held = j.state = 'running', updated_at = {now}
from c where j.id = c.id
  and (j.state in ('scheduled', 'paused', 'running') or j.state = 'pending' and j.cadence is not null)
returning j.id

-- name: enable
{chosen}
update windlass_jobs j set
    state = case when j.state = 'paused' then 'scheduled' else j.state end, paused_at = null, held = false, updated_at = {now}
from c where j.id = c.id
  and j.state in ('scheduled', 'pending', 'paused', 'running')
returning j.id

-- name: run_now
-- A paused job runs once and is paused again; a running one runs once more after its run.
{chosen}
update windlass_jobs j set
    state = case when j.state = 'paused' or j.spawn then 'scheduled' when j.state = 'running' then j.state else 'pending' end,
    wait_reason = case when j.state <> 'running' then 'operator' end,
    run_at = case when j.state = 'running' then j.run_at else least(j.run_at, {now}) end,
    rerun_at = case when j.state = 'running' then {now} end,
    rerun_slot_at = case when j.state = 'running' then j.rerun_slot_at end,
    held = j.held or j.state = 'paused', paused_at = null, updated_at = {now}
from c where j.id = c.id
  and j.state in ('scheduled', 'pending', 'paused', 'running')
returning j.id

-- name: retry
-- A fresh start. Of several jobs with one key only the first comes back, and none while another job holds the key.
with c as materialized (
    select j.id, j.task, j.unique_key, j.unique_slot from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and (j.state = 'failed' or j.state = 'scheduled' and j.wait_reason in ('retry', 'lost'))
    order by j.id for update of j
), free as materialized (
    select ranked.id from (
        select c.id, c.task, c.unique_key, row_number() over (
            partition by c.task, c.unique_key order by c.unique_slot is null, c.id
        ) as place from c
    ) as ranked
    where ranked.unique_key is null or ranked.place = 1 and not exists (
        select 1 from windlass_jobs o where o.task = ranked.task and o.unique_slot = ranked.unique_key and o.id <> ranked.id
    )
), letters as (
    update windlass_dead_letters d set closed_at = {now}, closed_reason = :closed_reason::text
    where d.closed_at is null and d.job_id in (select id from free)
), changed as (
    update windlass_jobs j set
        state = case when j.spawn then 'scheduled' else 'pending' end, wait_reason = 'operator', run_at = {now},
        attempt = 0, crashes = 0, closed_at = null, priority = j.base_priority, unique_slot = j.unique_key, done_reason = null, updated_at = {now}
    from free where j.id = free.id
    returning j.id
)
select id from changed

-- name: holders_of
select j.id, o.id from windlass_jobs j
join windlass_jobs o on o.task = j.task and o.unique_slot = j.unique_key and o.id <> j.id
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))

-- name: edit
-- Only a new cadence moves the next run; during a run it takes effect when the run ends.
with changed as (
    update windlass_jobs j set
        priority = coalesce(:priority::integer, j.priority), base_priority = coalesce(:priority::integer, j.base_priority),
        max_attempts = coalesce(:max_attempts::integer, j.max_attempts), retry = coalesce(:retry::text, j.retry),
        timeout_us = coalesce(:timeout_us::bigint, j.timeout_us), cadence = coalesce(:cadence::text, j.cadence),
        run_at = case when j.state in ('scheduled', 'pending', 'paused') then coalesce(:next_at::timestamptz, j.run_at) else j.run_at end,
        slot_at = case when j.state in ('scheduled', 'pending', 'paused') then coalesce(:next_at::timestamptz, j.slot_at) else j.slot_at end,
        state = case when :next_at::timestamptz is not null and j.state = 'pending' then 'scheduled' else j.state end,
        wait_reason = case when :next_at::timestamptz is not null and j.wait_reason is not null then 'recurrence' else j.wait_reason end,
        attempt = case when :next_at::timestamptz is not null and j.wait_reason is not null then 0 else j.attempt end,
        rerun_at = case when j.state = 'running' then least(j.rerun_at, :next_at::timestamptz) end,
        rerun_slot_at = case when j.state = 'running' then coalesce(:next_at::timestamptz, j.rerun_slot_at) end,
        updated_at = {now}
    where j.id = :id and j.state not in ('completed', 'cancelled')
      and (:cadence::text is null or j.cadence is not null)
      and (:max_attempts::integer is null or j.state = 'failed' or {enough})
    returning j.id
), bodies as (
    update windlass_bodies b set
        payload = coalesce(:payload::json, b.payload), metadata = coalesce(:metadata::json, b.metadata),
        description = coalesce(:description::text, b.description)
    where b.job_id in (select id from changed)
      and (:payload::json is not null or :metadata::json is not null or :description::text is not null)
)
select id from changed

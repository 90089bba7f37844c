-- name: cancel
-- Computed from the locked rows alone: the snapshot's row may be older, and mixing the two breaks the checks.
-- Wins at once. A running job keeps its lease and its unique slot until its worker reports that it has stopped, or the lease ends.
with c as materialized (
    select j.id, j.state, j.started_at, j.executions, j.attempt, j.token, j.worker, j.slot_at, j.run_at
    from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and {may_cancel}
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

-- name: resume
-- A recurring job counts anew from now: the caller has computed its next time.
update windlass_jobs j set
    state = 'scheduled', paused_at = null,
    run_at = coalesce({epoch} + s.next_us * {us}, j.run_at), slot_at = coalesce({epoch} + s.slot_us * {us}, j.slot_at),
    wait_reason = case when s.next_us is null then j.wait_reason else 'recurrence' end,
    attempt = case when s.next_us is null then j.attempt else 0 end, updated_at = {now}
from json_to_recordset(:jobs::json) as s (id bigint, next_us bigint, slot_us bigint)
where j.id = s.id and {may_resume}
returning j.id

-- name: retry
-- A fresh start. Of several jobs with one key only the first comes back, and none while another job holds the key.
with c as materialized (
    select j.id, j.task, j.unique_key, j.unique_slot from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and {may_retry}
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
    where j.id = :id and {may_edit}
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

-- name: override
-- The caller has locked the rows. A revoked run gives its attempt back unless the job ends here; one that had not started gives
-- its execution number back too. Of several jobs with one key only the first may take it, and none while another job holds it.
with c as materialized (
    select j.id, j.task, j.state, j.started_at, j.executions, j.attempt, j.token, j.worker, j.slot_at, j.run_at, j.unique_key,
        j.unique_slot, j.state = 'running' and j.started_at is not null as has_run,
        j.state = 'running' and j.started_at is null as is_unstarted,
        j.unique_key is not null
            and (:state::text = 'pending' or :state::text = 'running' and j.unique_scope <> 'pending') as takes_key
    from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and not (j.spawn and :state::text in ('pending', 'running'))
), free as materialized (
    select ranked.* from (
        select c.*, row_number() over (
            partition by c.task, c.unique_key, c.takes_key order by c.unique_slot is null, c.id
        ) as place from c
    ) as ranked
    where not ranked.takes_key or ranked.place = 1 and not exists (
        select 1 from windlass_jobs o where o.task = ranked.task and o.unique_slot = ranked.unique_key and o.id <> ranked.id
    )
), history as (
    insert into windlass_executions (
        job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason
    )
    select id, executions, attempt, token, slot_at, worker, started_at, greatest({now}, started_at),
        greatest(0, floor(extract(epoch from started_at - run_at) * 1000))::bigint, 'cancelled', 'stopped'
    from free where has_run
), letters as (
    update windlass_dead_letters d set closed_at = {now}, closed_reason = 'overridden'
    where :state::text <> 'failed' and d.closed_at is null
      and d.job_id = any(array(select id from free where state = 'failed'))
), changed as (
    update windlass_jobs j set
        state = :state::text, wait_reason = case when :state::text = 'pending' then 'operator' end,
        priority = case when :state::text = 'pending' then j.base_priority else j.priority end,
        run_at = case when :state::text = 'pending' then {now} else j.run_at end,
        attempt = case
            when :state::text = 'pending' then 0
            when :state::text <> 'running' then free.attempt - free.is_unstarted::integer
            when free.state in ('completed', 'failed', 'cancelled') then 1
            else free.attempt + (free.state <> 'running')::integer
        end,
        executions = free.executions - free.is_unstarted::integer + (:state::text = 'running')::integer,
        crashes = case when :state::text = 'pending' then 0 else j.crashes end,
        token = case when :state::text = 'running' then :token::bigint end,
        worker = case when :state::text = 'running' then :worker::text end, pull_id = null,
        claimed_at = case when :state::text = 'running' then {now} else j.claimed_at end,
        lease_expires_at = case when :state::text = 'running' then {now} + :lease::interval end,
        started_at = case when :state::text = 'running' then {now} else j.started_at end,
        finished_at = case when free.has_run then greatest({now}, free.started_at) else j.finished_at end,
        closed_at = case when :state::text in ('completed', 'failed') then {now} end, paused_at = null,
        held = j.held and :state::text in ('pending', 'running'),
        stop_requested = false, rerun_at = null, rerun_slot_at = null,
        unique_slot = case when free.takes_key then j.unique_key when j.unique_scope = 'forever' then j.unique_slot end,
        last_error = case when :state::text <> 'completed' then j.last_error end,
        last_error_at = case when :state::text <> 'completed' then j.last_error_at end,
        done_reason = case when :state::text in ('completed', 'failed') then 'overridden' end, updated_at = {now}
    from free where j.id = free.id
    returning j.id
)
select id from changed

-- name: delete_jobs
-- Items stay: they belong to their collection.
with c as materialized (
    select j.id from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and j.token is null
    order by j.id for update
), bodies as (
    delete from windlass_bodies where job_id = any(array(select id from c))
), runs as (
    delete from windlass_executions where job_id = any(array(select id from c))
), letters as (
    delete from windlass_dead_letters where job_id = any(array(select id from c))
), answers as (
    delete from windlass_idempotency where job_id = any(array(select id from c))
), gone as (
    delete from windlass_jobs where id = any(array(select id from c)) returning id
)
select id from gone

-- name: postpone
-- The caller has locked the rows.
update windlass_jobs j set
    state = 'scheduled', wait_reason = 'retry', run_at = {now} + s.delay_us * interval '1 microsecond',
    priority = j.base_priority, last_error = :error::text, last_error_at = {now}, updated_at = {now}
from json_to_recordset(:jobs::json) as s (id bigint, delay_us bigint)
where j.id = s.id and j.state = 'pending'
returning j.id

-- name: bury
-- The caller has locked the rows.
with c as materialized (
    select j.id from windlass_jobs j
    where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
      and {may_bury}
), letters as (
    insert into windlass_dead_letters (job_id, task, lane, original_job, error, details, fingerprint, first_died_at, died_at)
    select j.id, j.task, j.lane, {original_job}, :error::text,
        json_build_object('type', :error_type::text, 'attempt', j.attempt, 'execution', j.executions),
        :fingerprints::json ->> j.task, {now}, {now}
    from windlass_jobs j join windlass_bodies b on b.job_id = j.id
    where j.id = any(array(select id from c)) order by j.id
    on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
        original_job = excluded.original_job, error = excluded.error, details = excluded.details,
        fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = windlass_dead_letters.deaths + 1,
        version = case when windlass_dead_letters.fingerprint = excluded.fingerprint then windlass_dead_letters.version end
), changed as (
    update windlass_jobs j set
        state = 'failed', wait_reason = null, closed_at = {now}, held = false,
        unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
        last_error = :error::text, last_error_at = {now}, done_reason = 'buried', updated_at = {now}
    where j.id = any(array(select id from c))
    returning j.id
)
select id from changed

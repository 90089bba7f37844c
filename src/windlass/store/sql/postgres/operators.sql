-- name: boost
-- Never down: a priority above the ceiling stays. The inner ceiling keeps the sum within an integer.
{chosen}
update windlass_jobs j set
    priority = greatest(j.priority, least(:most, least(j.priority, :most) + :amount)),
    base_priority = greatest(j.base_priority, least(:most, least(j.base_priority, :most) + :amount)), updated_at = {now}
from c where j.id = c.id and j.state not in ('completed', 'cancelled')
returning j.id

-- name: set_priority
{chosen}
update windlass_jobs j set priority = :priority, base_priority = :priority, updated_at = {now}
from c where j.id = c.id and j.state not in ('completed', 'cancelled')
returning j.id

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

-- name: buriable
select j.id, j.task from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
  and j.state in ('pending', 'scheduled')
order by j.id

-- name: postponable
select j.id, j.retry, j.attempt from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and j.state = 'pending'
order by j.id

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
      and j.state in ('pending', 'scheduled')
), letters as (
    insert into windlass_dead_letters (job_id, task, lane, original_job, error, details, fingerprint, first_died_at, died_at)
    select j.id, j.task, j.lane, {original_job}, :error::text,
        json_build_object('type', :error_type::text, 'attempt', j.attempt, 'execution', j.executions),
        :fingerprints::json ->> j.task, {now}, {now}
    from windlass_jobs j join windlass_bodies b on b.job_id = j.id
    where j.id = any(array(select id from c)) order by j.id
    on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
        original_job = excluded.original_job, error = excluded.error, details = excluded.details,
        fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = windlass_dead_letters.deaths + 1
), changed as (
    update windlass_jobs j set
        state = 'failed', wait_reason = null, closed_at = {now}, held = false,
        unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
        last_error = :error::text, last_error_at = {now}, done_reason = 'buried', updated_at = {now}
    where j.id = any(array(select id from c))
    returning j.id
)
select id from changed

-- name: leased
-- As `lapsed`, of jobs by number and whenever their lease ends.
select j.id, j.task, j.lane, '{}', {claimed_rest}, j.started_at, j.stop_requested, j.state = 'cancelled'
from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and j.token is not null
order by j.id

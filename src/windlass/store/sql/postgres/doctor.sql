-- name: doctor_jobs
-- Everything about a job in one statement, so that a job that moves meanwhile is not reported. Instants are only tested here:
-- one that is out of range could not be read. The ranges keep every page to its part of the indexes; so do counts in place of
-- `exists`, which the planner would answer by hashing the whole table again for each page.
with page as materialized (
    select id from windlass_jobs where id > :after::bigint order by id limit :limit::integer
), runs as materialized (
    select job_id, count(*) as kept, count(distinct number) as numbers, count(distinct token) as tokens,
        min(number) as oldest, max(number) as newest
    from windlass_executions where job_id > :after::bigint and job_id <= (select max(id) from page) group by job_id
), letters as materialized (
    select job_id, count(*) filter (where closed_at is null) as standing,
        count(*) filter (where closed_at is null and acknowledged_at is null) as open
    from windlass_dead_letters where job_id > :after::bigint and job_id <= (select max(id) from page) group by job_id
)
select j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.base_priority, j.attempt, j.max_attempts, j.executions,
    j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence, j.spawn, j.timeout_us, j.token, j.worker, j.held,
    j.stop_requested, j.name, j.unique_key, j.unique_scope, j.unique_slot, j.progress_count, j.result_count, j.target_count,
    j.done_reason, j.slot_at is not null, j.claimed_at is not null, j.lease_expires_at is not null, j.started_at is not null,
    j.closed_at is not null, j.paused_at is not null, j.rerun_at is not null, j.rerun_slot_at is not null,
    j.run_at between timestamptz 'epoch' and timestamptz '9999-12-31 00:00:00+00',
    coalesce(j.lease_expires_at between timestamptz 'epoch' and timestamptz '9999-12-31 00:00:00+00', false),
    greatest(j.slot_at, j.claimed_at, j.started_at, j.finished_at, j.closed_at, j.paused_at, j.rerun_at, j.rerun_slot_at,
        j.last_error_at, j.last_progress_at, j.created_at, j.updated_at) <= timestamptz '9999-12-31 00:00:00+00',
    coalesce(j.lease_expires_at >= j.claimed_at, true), coalesce(j.finished_at >= j.started_at, true),
    true,
    (select count(*) from windlass_bodies b where b.job_id = j.id),
    coalesce(r.kept, 0), coalesce(r.numbers, 0), coalesce(r.tokens, 0), coalesce(r.oldest, 0), coalesce(r.newest, 0),
    case when j.token is null then 0
        else (select count(*) from windlass_executions x where x.job_id = j.id and x.token = j.token) end,
    (select count(*) from windlass_executions x
        where x.job_id = j.id and x.number = j.executions and x.started_at = j.started_at) > 0,
    coalesce(l.standing, 0), coalesce(l.open, 0), coalesce(j.closed_at < {now} - :kept_dead::interval, false)
from windlass_jobs j left join runs r on r.job_id = j.id left join letters l on l.job_id = j.id
where j.id > :after::bigint and j.id <= (select max(id) from page) order by j.id

-- name: doctor_bodies
select b.job_id, b.payload::text, b.metadata::text, b.item_key::text, (select count(*) from windlass_jobs j where j.id = b.job_id) > 0
from windlass_bodies b where b.job_id > :after::bigint order by b.job_id limit :limit::integer

-- name: doctor_executions
select x.job_id, x.number, x.attempt, x.wait_ms, x.status, x.reason, x.finished_at >= x.started_at,
    true,
    (select count(*) from windlass_jobs j where j.id = x.job_id) > 0
from windlass_executions x where (x.job_id, x.number) > (:after::bigint, :after_number::integer)
order by x.job_id, x.number limit :limit::integer

-- name: doctor_letters
select d.id, d.job_id, d.deaths, d.acknowledged_at is not null, d.acknowledged_by is not null, d.closed_at is not null,
    d.closed_reason, d.died_at >= d.first_died_at, true,
    (select count(*) from windlass_jobs j where j.id = d.job_id) > 0
from windlass_dead_letters d where d.id > :after::bigint order by d.id limit :limit::integer

-- name: doctor_slots
select j.id, o.id from (
    select task, unique_slot, min(id) as id from windlass_jobs
    where unique_slot is not null group by task, unique_slot having count(*) > 1
) as o join windlass_jobs j on j.task = o.task and j.unique_slot = o.unique_slot and j.id > o.id
order by j.id

-- name: doctor_names
select j.id, o.id from (
    select name, min(id) as id from windlass_jobs where name is not null group by name having count(*) > 1
) as o join windlass_jobs j on j.name = o.name and j.id > o.id
order by j.id

-- name: doctor_counts
-- Both sides in one statement: between two, a busy queue would have moved on.
select task, lane, state, wait_reason, sum(counted)::bigint, sum(present)::bigint from (
    select task, lane, state, wait_reason, jobs as counted, 0 as present from windlass_counts
    union all
    select task, lane, state, wait_reason, jobs, 0 from windlass_count_deltas
    union all
    select task, lane, state, coalesce(wait_reason, ''), 0, count(*) from windlass_jobs group by 1, 2, 3, 4
) as both_sides group by task, lane, state, wait_reason having sum(counted) <> sum(present) order by 1, 2, 3, 4

-- name: doctor_gates
select count(*) from windlass_gates

-- name: doctor_breakers
select b.probe_job_id, b.name, b.state, b.threshold, b.open_us, b.opened_at is not null, b.probe_at is not null,
    b.half_opened_at is not null, b.probe_token is not null, b.is_forced,
    (select e.state from windlass_breaker_events e where e.breaker = b.name order by e.id desc limit 1)
from windlass_breakers b order by b.name


-- name: doctor_items
-- A job has at least as many items as it says it found: a job that runs again counts anew, and its items stay.
select j.id, j.result_count, coalesce(i.items, 0) from windlass_jobs j
left join (select job_id, count(*) as items from windlass_items group by job_id) as i on i.job_id = j.id
where j.result_count > coalesce(i.items, 0) order by j.id

-- name: doctor_idempotency
select i.job_id, count(*) from windlass_idempotency i
where not exists (select 1 from windlass_jobs j where j.id = i.job_id) group by i.job_id order by i.job_id


-- name: doctor_totals
-- Totals never fall, executions are pruned: so there are at least as many counted as kept.
select sum(counted)::bigint, sum(kept)::bigint from (
    select runs as counted, 0 as kept from windlass_totals
    union all
    select runs, 0 from windlass_run_deltas
    union all
    select 0, count(*) from windlass_executions x join windlass_jobs j on j.id = x.job_id
) as both_sides having sum(counted) < sum(kept)

-- name: doctor_minutes
-- Every minute that is kept is in the row of all tasks too.
select minute, sum(case when task = '' then completed + failed + cancelled else 0 end)::bigint,
    sum(case when task = '' then 0 else completed + failed + cancelled end)::bigint
from windlass_minutes group by minute
having sum(case when task = '' then completed + failed + cancelled else -completed - failed - cancelled end) <> 0 order by 1

-- name: doctor_feeds
-- A feed's mirror says what its job says, and its job is one that fetches it.
select f.job_id, f.id from windlass_feeds f left join windlass_jobs j on j.id = f.job_id
where f.next_fetch_at is distinct from case when j.state in ('scheduled', 'pending', 'running') and not j.held then j.run_at end
   or f.job_id is not null and (j.task is distinct from 'fetch_feed' or j.subject is distinct from cast(f.id as text))
order by f.id

-- name: doctor_subscribers
-- A feed has as many subscribers as it counts.
select f.job_id, f.id, f.subscribers, coalesce(s.present, 0) from windlass_feeds f
left join (
    select feed_id, count(*) as present from windlass_subscriptions where unsubscribed_at is null group by feed_id
) as s on s.feed_id = f.id
where f.subscribers <> coalesce(s.present, 0) order by f.id

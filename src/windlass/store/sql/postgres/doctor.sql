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

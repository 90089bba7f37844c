-- name: identity
select database_id || '@' || current_database() from windlass_gates

-- name: get_jobs
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by j.id

-- name: list_executions
select * from (
    select * from (
        select {run_columns} from windlass_executions x where x.job_id = :job_id::bigint and x.number < :before::integer
        order by x.number desc limit :depth::integer
    ) as ended
    union all
    {running_run} and j.executions < :before::integer
) as runs order by number desc limit :limit::integer offset :offset::integer

-- name: get_execution
select {run_columns} from windlass_executions x where x.job_id = :job_id::bigint and x.number = :number::integer
union all
{running_run} and j.executions = :number::integer

-- name: count_executions
-- Numbers have no gaps and retention takes the oldest, so the first and the last say how many there are.
select coalesce((select x.number from windlass_executions x where x.job_id = :job_id::bigint order by x.number desc limit 1)
        - (select x.number from windlass_executions x where x.job_id = :job_id::bigint order by x.number limit 1) + 1, 0)
    + (select count(*) from windlass_jobs j where j.id = :job_id::bigint and j.state = 'running' and j.started_at is not null)

-- name: list_dead_letters
select id, job_id, task, lane, original_job::text, error, details::text, fingerprint, deaths, first_died_at, died_at,
    acknowledged_at, acknowledged_by, note, closed_at, closed_reason
from windlass_dead_letters where job_id = :job_id order by id

-- name: count_jobs
select task, lane, state, wait_reason, sum(jobs)::bigint from (
    select task, lane, state, wait_reason, jobs from windlass_counts
    union all
    select task, lane, state, wait_reason, jobs from windlass_count_deltas
) as counted group by task, lane, state, wait_reason having sum(jobs) <> 0 order by 1, 2, 3, 4

-- name: count_task
-- One statement, so that all parts are of one moment. Templates that wait have an index of their own, and few have failed.
select task, lane, state, wait_reason, sum(jobs)::bigint from (
    select task, lane, state, wait_reason, jobs from windlass_counts where task = :task
    union all
    select task, lane, state, wait_reason, jobs from windlass_count_deltas where task = :task
    union all
    select task, lane, state, coalesce(wait_reason, ''), -1 from windlass_jobs
    where state = 'scheduled' and spawn and task = :task
    union all
    select task, lane, state, '', -1 from windlass_jobs
    where state = 'failed' and closed_at is not null and cadence is not null and spawn and task = :task
) as counted where state not in ('paused', 'cancelled')
group by task, lane, state, wait_reason having sum(jobs) <> 0 order by 1, 2, 3, 4

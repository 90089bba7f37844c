-- name: list_all_{direction}
-- Every list looks at candidates in an order that an index has, no more than it needs or than a bound, and keeps what
-- matches. The limits inside are literals, as in the claim.
{list_head}
select {listed} from windlass_jobs j not indexed where j.id > :above::bigint and j.id < :below::bigint
    order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_recurring_{direction}
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_recurring where j.cadence is not null and j.id > :above::bigint and j.id < :below::bigint
    order by j.id {down} limit {most_listed}
{list_tail}

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
-- Numbers have no gaps and retention takes the oldest, so the first and the last show how many there are.
select coalesce((select x.number from windlass_executions x where x.job_id = :job_id::bigint order by x.number desc limit 1)
        - (select x.number from windlass_executions x where x.job_id = :job_id::bigint order by x.number limit 1) + 1, 0)
    + (select count(*) from windlass_jobs j where j.id = :job_id::bigint and j.state = 'running' and j.started_at is not null)

-- name: list_dead_letters
select {letter_columns} from windlass_dead_letters d where d.job_id = :job_id order by d.id

-- name: count_jobs
select task, lane, state, wait_reason, sum(jobs)::bigint from (
    select task, lane, state, wait_reason, jobs from windlass_counts
    union all
    select task, lane, state, wait_reason, jobs from windlass_count_deltas
) as counted group by task, lane, state, wait_reason having sum(jobs) <> 0 order by 1, 2, 3, 4

-- name: list_correlation
-- A job without a correlation id shows its own number as one: then its children are meant too.
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id = any(array(
    select id from (
        select id from windlass_jobs where correlation_id = :correlation_id::text and id > :after::bigint order by id limit {most_related}
    ) as same
    union select id from windlass_jobs where id = :own::bigint and id > :after::bigint
    union select id from (
        select id from windlass_jobs where parent_id = :own::bigint and id > :after::bigint order by id limit {most_related}
    ) as children
))
order by j.id limit {most_related}

-- name: run_totals
select task, status, reason, sum(runs)::bigint, sum(wait_ms)::bigint, sum(duration_ms)::bigint from (
    select task, status, reason, runs, wait_ms, duration_ms from windlass_totals
    union all
    select task, status, reason, runs, wait_ms, duration_ms from windlass_run_deltas
) as both_halves group by task, status, reason order by 1, 2, 3

-- name: run_minutes
-- Both halves in one statement: between two, a fold would move runs from one to the other.
select minute, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram::text, run_histogram::text
from windlass_minutes where task = coalesce(:task::text, '') and (:lane::text is null or lane = :lane::text)
    and minute >= :since::timestamptz and minute < :before_at::timestamptz
union all
select minute, sum(runs) filter (where status = 'completed')::bigint, sum(runs) filter (where status = 'failed')::bigint,
    sum(runs) filter (where status = 'cancelled')::bigint, sum(wait_ms)::bigint, sum(duration_ms)::bigint,
    '{"' || wait_bucket || '":' || sum(runs) || '}', '{"' || run_bucket || '":' || sum(runs) || '}'
from windlass_run_deltas
where (:task::text is null or task = :task::text) and (:lane::text is null or lane = :lane::text)
    and minute >= :since::timestamptz and minute < :before_at::timestamptz and reason not in ('released', 'snoozed')
group by minute, wait_bucket, run_bucket

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

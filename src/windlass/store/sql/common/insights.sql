-- name: busy_slots
-- Only leases are indexed, and there are no more of them than slots.
select worker, lane, count(*) from (
    select worker, lane from windlass_jobs where token is not null and started_at is not null order by id limit :limit
) as started group by worker, lane order by 1, 2

-- name: newest_slices
-- The newest jobs by task and lane, which shows where jobs come in without reading all that came.
select task, lane, count(*) from (
    select task, lane from windlass_jobs not indexed where id > :above::bigint order by id desc limit :limit
) as newest group by task, lane order by 1, 2

-- name: retried_slices
-- Among the newest jobs that ran more than once: how many had to be tried again and have ended, and how many of those ended well.
select task, lane, count(*), sum(case when state = 'completed' then 1 else 0 end)::bigint from (
    select task, lane, state, attempt, cadence from windlass_jobs indexed by windlass_jobs_histories where executions > 1
    order by id desc limit :limit
) as newest
where attempt > 1 and cadence is null and state in ('completed', 'failed') group by task, lane order by 1, 2

-- name: breaker_trips
select breaker, count(*) from (
    select breaker, state, at from windlass_breaker_events order by id desc limit :limit
) as newest where state = 'open' and at >= {now} - :within::interval group by breaker order by 1

-- name: count_alerts
select count(*) from (select 1 from windlass_alerts where cleared_at is null and raised_at is not null limit :limit) as raised

-- name: declared_tasks
select name, lane from windlass_tasks where is_declared order by name limit :limit

-- name: recent_minutes
-- What is folded of them; a snapshot reads the rest with unfolded_runs.
select task, lane, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram::text, run_histogram::text
from windlass_minutes where minute >= :since::timestamptz and task <> ''

-- name: folded_totals
select task, status, reason, runs, wait_ms, duration_ms from windlass_totals

-- name: run_times
select task, runs, wait_ms, duration_ms, wait_histogram::text, run_histogram::text from windlass_run_times

-- name: unfolded_runs
-- Read once and added to whatever a look shows. The buckets come as one text for each kind of end, which costs less than a row for
-- each; grouped by the first columns of SQLite's key, which is its order.
select task, lane, status, reason, case when minute >= :since::timestamptz then 1 else 0 end, sum(runs)::bigint,
    sum(wait_ms)::bigint, sum(duration_ms)::bigint, string_agg(wait_bucket || ':' || run_bucket || ':' || runs, ',')
from windlass_run_deltas group by minute, task, lane, status, reason

-- name: next_fires
-- Of the newest recurring jobs, those that are due next.
select id, name, task, run_at from (
    select id, name, task, run_at, state from windlass_jobs indexed by windlass_jobs_recurring where cadence is not null
    order by id desc limit :most
) as recurring where state in ('scheduled', 'pending') order by run_at, id limit :limit

-- name: record_sample
insert into windlass_samples (minute, waiting, oldest_us, running, retrying, in_per_second)
values (:minute::timestamptz, :waiting, :oldest_us, :running, :retrying, :in_per_second)
on conflict (minute) do update set waiting = excluded.waiting, oldest_us = excluded.oldest_us, running = excluded.running,
    retrying = excluded.retrying, in_per_second = excluded.in_per_second
returning minute

-- name: prune_samples
delete from windlass_samples where minute < :kept_since::timestamptz returning minute

-- name: list_samples
select minute, waiting, oldest_us, running, retrying, in_per_second from windlass_samples
where minute >= :since::timestamptz order by minute

-- name: late_schedules
-- The first that should have been made claimable or spawned by now, and the first recurring job that waits for a slot.
select
    (select run_at from windlass_jobs indexed by windlass_jobs_scheduled where state = 'scheduled' and not spawn
        and run_at <= {now} order by run_at, id limit 1),
    (select run_at from windlass_jobs indexed by windlass_jobs_templates where state = 'scheduled' and spawn
        and run_at <= {now} order by run_at, id limit 1),
    (select min(run_at) from (
        select state, run_at from windlass_jobs indexed by windlass_jobs_recurring where cadence is not null
        order by id desc limit :limit
    ) as recurring where state = 'pending' and run_at <= {now})

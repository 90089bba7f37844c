-- name: run_totals
select task, status, reason, sum(runs)::bigint, sum(wait_ms)::bigint, sum(duration_ms)::bigint from (
    select task, status, reason, runs, wait_ms, duration_ms from windlass_totals
    union all
    select task, status, reason, runs, wait_ms, duration_ms from windlass_run_deltas
) as both_halves group by task, status, reason order by 1, 2, 3

-- name: run_minutes
-- Both halves in one statement: between two, a fold would move runs from one to the other.
select minute, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram::text, run_histogram::text
from windlass_minutes where task = coalesce(:task::text, '') and minute >= :since::timestamptz
    and minute < :before_at::timestamptz
union all
select minute, sum(runs) filter (where status = 'completed')::bigint, sum(runs) filter (where status = 'failed')::bigint,
    sum(runs) filter (where status = 'cancelled')::bigint, sum(wait_ms)::bigint, sum(duration_ms)::bigint,
    '{"' || wait_bucket || '":' || sum(runs) || '}', '{"' || run_bucket || '":' || sum(runs) || '}'
from windlass_run_deltas
where (:task::text is null or task = :task::text) and minute >= :since::timestamptz and minute < :before_at::timestamptz
    and reason not in ('released', 'snoozed')
group by minute, wait_bucket, run_bucket

-- name: fold_runs
-- Written in key order, so that two processes folding at once cannot deadlock; the second adds to what the first has written.
with taken as materialized (
    delete from windlass_run_deltas where id in (
        select id from windlass_run_deltas order by id limit :limit::integer for update skip locked
    ) returning minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms
), counted as materialized (
    select minute, task, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from taken
    where reason not in ('released', 'snoozed')
    union all
    select minute, '', status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from taken
    where reason not in ('released', 'snoozed')
), parts as materialized (
    select minute, task, 'wait' as kind, wait_bucket as bucket, sum(runs) as runs,
        coalesce(sum(runs) filter (where status = 'completed'), 0) as completed,
        coalesce(sum(runs) filter (where status = 'failed'), 0) as failed,
        coalesce(sum(runs) filter (where status = 'cancelled'), 0) as cancelled,
        sum(wait_ms) as wait_ms, sum(duration_ms) as duration_ms
    from counted group by minute, task, wait_bucket
    union all
    select minute, task, 'run', run_bucket, sum(runs), 0, 0, 0, 0, 0 from counted group by minute, task, run_bucket
), totals as (
    insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
    select task, status, reason, sum(runs), sum(wait_ms), sum(duration_ms) from taken group by 1, 2, 3 order by 1, 2, 3
    on conflict (task, status, reason) do update set runs = windlass_totals.runs + excluded.runs,
        wait_ms = windlass_totals.wait_ms + excluded.wait_ms, duration_ms = windlass_totals.duration_ms + excluded.duration_ms
), minutes as (
    insert into windlass_minutes (
        minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram
    )
    select minute, task, sum(completed), sum(failed), sum(cancelled), sum(wait_ms), sum(duration_ms),
        json_object_agg(bucket, runs) filter (where kind = 'wait'), json_object_agg(bucket, runs) filter (where kind = 'run')
    from parts group by minute, task order by task, minute
    on conflict (task, minute) do update set
        completed = windlass_minutes.completed + excluded.completed, failed = windlass_minutes.failed + excluded.failed,
        cancelled = windlass_minutes.cancelled + excluded.cancelled, wait_ms = windlass_minutes.wait_ms + excluded.wait_ms,
        duration_ms = windlass_minutes.duration_ms + excluded.duration_ms,
        wait_histogram = windlass_merged(windlass_minutes.wait_histogram, excluded.wait_histogram),
        run_histogram = windlass_merged(windlass_minutes.run_histogram, excluded.run_histogram)
)
select count(*) from taken

-- name: prune_minutes
with pruned as (
    delete from windlass_minutes where ctid = any(array(
        select ctid from windlass_minutes where minute < {now} - :keep_for::interval order by minute
            limit :limit::integer for update skip locked
    )) returning 1
)
select count(*) from pruned

-- name: job_stats
select count(x.number) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')), count(*)
    filter (where x.status = 'completed'),
    count(*) filter (where x.status = 'failed'),
    (sum(floor(extract(epoch from x.finished_at - x.started_at) * 1000))
        filter (where coalesce(x.reason, '') not in ('released', 'snoozed')))::bigint,
    greatest(max(x.started_at), j.started_at),
    case when j.state in ('scheduled', 'pending') then j.run_at end
from windlass_jobs j left join windlass_executions x on x.job_id = j.id
where j.id = :job_id::bigint group by j.id, j.started_at, j.state, j.run_at

-- name: oldest_pending
-- One probe for each lane, task and priority with pending work, however long the backlog behind it is.
with recursive heads as (
    (select lane, task, priority, run_at from windlass_jobs where state = 'pending' and crashes = 0
     order by lane, task, priority desc, run_at, id limit 1)
    union all
    select n.lane, n.task, n.priority, n.run_at from heads h cross join lateral (
        (select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
         where j.state = 'pending' and j.crashes = 0 and j.lane = h.lane and j.task = h.task and j.priority < h.priority
         order by j.priority desc, j.run_at, j.id limit 1)
        union all
        (select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
         where j.state = 'pending' and j.crashes = 0 and (j.lane, j.task) > (h.lane, h.task)
         order by j.lane, j.task, j.priority desc, j.run_at, j.id limit 1)
        limit 1
    ) as n
)
select {now}, least(
    (select min(run_at) from (select run_at from heads limit 10000) as found),
    (select min(run_at) from (select run_at from windlass_jobs where state = 'pending' and crashes > 0 limit 10000) as suspects)
)

-- name: pending_priorities
select priority, count(*) from (
    select priority from (
        (select priority from windlass_jobs where state = 'pending' and crashes = 0 limit 10001)
        union all (select priority from windlass_jobs where state = 'pending' and crashes > 0 limit 10001)
    ) as pending limit 10001
) as found
group by priority order by priority desc

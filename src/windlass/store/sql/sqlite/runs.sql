-- name: run_totals
select task, status, reason, sum(runs), sum(wait_ms), sum(duration_ms) from (
    select task, status, reason, runs, wait_ms, duration_ms from windlass_totals
    union all
    select task, status, reason, runs, wait_ms, duration_ms from windlass_run_deltas
) as both_halves group by task, status, reason order by 1, 2, 3

-- name: run_minutes
-- Both halves in one statement: between two, a fold would move runs from one to the other.
select minute, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram
from windlass_minutes where task = coalesce(:task, '') and minute >= :since and minute < :before_at
union all
select minute, sum(runs) filter (where status = 'completed'), sum(runs) filter (where status = 'failed'),
    sum(runs) filter (where status = 'cancelled'), sum(wait_ms), sum(duration_ms),
    '{"' || wait_bucket || '":' || sum(runs) || '}', '{"' || run_bucket || '":' || sum(runs) || '}'
from windlass_run_deltas
where (:task is null or task = :task) and minute >= :since and minute < :before_at and reason not in ('released', 'snoozed')
group by minute, wait_bucket, run_bucket

-- name: fold_runs
-- Each statement takes the same rows, the first by their key: nobody else writes in this transaction.
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select task, status, reason, sum(runs), sum(wait_ms), sum(duration_ms) from {taken_runs} as taken
where true group by 1, 2, 3
on conflict do update set runs = runs + excluded.runs, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms;
with counted as materialized (
    select minute, task, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from {taken_runs} as taken
    where reason not in ('released', 'snoozed')
    union all
    select minute, '', status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from {taken_runs} as taken
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
)
insert into windlass_minutes (minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram)
select minute, task, sum(completed), sum(failed), sum(cancelled), sum(wait_ms), sum(duration_ms),
    json_group_object(bucket, runs) filter (where kind = 'wait'), json_group_object(bucket, runs) filter (where kind = 'run')
from parts where true group by minute, task
on conflict do update set completed = completed + excluded.completed, failed = failed + excluded.failed,
    cancelled = cancelled + excluded.cancelled, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms,
    wait_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_minutes.wait_histogram)
                union all
                select key, value from json_each(excluded.wait_histogram)
            ) group by key
        )
    ),
    run_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_minutes.run_histogram)
                union all
                select key, value from json_each(excluded.run_histogram)
            ) group by key
        )
    );
delete from windlass_run_deltas where (minute, task, status, reason, wait_bucket, run_bucket) in (
    select minute, task, status, reason, wait_bucket, run_bucket from {taken_runs} as taken
);
select changes()

-- name: prune_minutes
delete from windlass_minutes where rowid in (
    select rowid from windlass_minutes where minute < {now} - :keep_for order by minute limit :limit
);
select changes()

-- name: job_stats
select count(x.number) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')),
    count(*) filter (where x.status = 'completed'), count(*) filter (where x.status = 'failed'),
    sum((x.finished_at - x.started_at) / 1000) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')),
    max(coalesce(max(x.started_at), j.started_at), coalesce(j.started_at, max(x.started_at))),
    case when j.state in ('scheduled', 'pending') then j.run_at end
from windlass_jobs j left join windlass_executions x on x.job_id = j.id
where j.id = :job_id group by j.id, j.started_at, j.state, j.run_at

-- name: oldest_pending
-- One probe for each lane, task and priority with pending work, however long the backlog behind it is.
with recursive heads (lane, task, priority) as (
    select c.lane, c.task, (
        select max(n.priority) from windlass_jobs n
        where n.state = 'pending' and n.crashes = 0 and n.lane = c.lane and n.task = c.task
    )
    from windlass_counts c where c.state = 'pending' and c.jobs > 0
    union
    select h.lane, h.task, (
        select max(n.priority) from windlass_jobs n
        where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task and n.priority < h.priority
    )
    from heads h where h.priority is not null
)
select {now}, (select min(run_at) from (
    select * from (
        select (
            select min(n.run_at) from windlass_jobs n
            where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task and n.priority = h.priority
        ) as run_at
        from heads h where h.priority is not null limit 10000
    )
    union all select * from (
        select n.run_at from windlass_jobs n indexed by windlass_jobs_suspects
        where n.state = 'pending' and n.crashes > 0 limit 10000
    )
))

-- name: pending_priorities
select priority, count(*) from (
    select priority from windlass_jobs indexed by windlass_jobs_pending where state = 'pending' and crashes = 0
    union all select priority from windlass_jobs indexed by windlass_jobs_suspects where state = 'pending' and crashes > 0
    limit 10001
) as found
group by priority order by priority desc

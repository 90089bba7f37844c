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
-- A job has at least as many items as it counts: a job that runs again counts anew, and its items stay.
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

-- name: doctor_run_times
-- Times are kept for ever: of each task no more than its totals, which began before them, and no fewer than its minutes, which are pruned.
select known.task, coalesce(t.runs, 0)::bigint, coalesce(t.wait_histogram::text, '{}'), coalesce(t.run_histogram::text, '{}'),
    coalesce((select sum(x.runs) from windlass_totals x where x.task = known.task and x.reason not in ('released', 'snoozed')), 0)::bigint,
    coalesce((select sum(m.completed + m.failed + m.cancelled) from windlass_minutes m
        where m.task = known.task and m.lane <> ''), 0)::bigint
from (
    select task from windlass_run_times union select task from windlass_minutes where task <> '' and lane <> ''
) as known left join windlass_run_times t on t.task = known.task order by known.task

-- name: doctor_feeds
-- A feed's mirror equals its job's next run, and its job is one that fetches it.
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

-- name: doctor_backlog
-- How much waits for upkeep or for people. Each is counted up to a bound only.
select 'count deltas', count(*) from (select 1 as one from windlass_count_deltas limit :most::integer) as part
union all select 'run deltas', count(*) from (select 1 as one from windlass_run_deltas limit :most::integer) as part
union all select 'unchained', count(*) from (select 1 as one from windlass_audit where chain is null limit :most::integer) as part
union all select 'open letters', count(*) from (
    select 1 as one from windlass_dead_letters where closed_at is null and acknowledged_at is null limit :most::integer
) as part

-- name: doctor_overdue
-- What upkeep should have moved by now: the earliest of each kind.
select 'scheduled', id, task, run_at from (
    select id, task, run_at from windlass_jobs where state = 'scheduled' and not spawn order by run_at, id limit 1
) as job where run_at < {now}
union all select 'template', id, task, run_at from (
    select id, task, run_at from windlass_jobs where state = 'scheduled' and spawn order by run_at, id limit 1
) as job where run_at < {now}
union all select 'lease', id, task, lease_expires_at from (
    select id, task, lease_expires_at from (
        select id, task, lease_expires_at from windlass_jobs where token is not null order by id limit :most::integer
    ) as leased order by lease_expires_at limit 1
) as job where lease_expires_at < {now}

-- name: doctor_total_keys
-- The same as `doctor_totals` for each key, with what is missing: runs and their times.
select task, status, reason, sum(counted)::bigint, sum(kept)::bigint, (sum(kept_wait) - sum(counted_wait))::bigint,
    (sum(kept_ms) - sum(counted_ms))::bigint
from (
    select task, status, reason, runs as counted, wait_ms as counted_wait, duration_ms as counted_ms,
        0 as kept, 0 as kept_wait, 0 as kept_ms from windlass_totals
    union all
    select task, status, reason, runs, wait_ms, duration_ms, 0, 0, 0 from windlass_run_deltas
    union all
    select j.task, x.status, coalesce(x.reason, ''), 0, 0, 0, count(*), sum(x.wait_ms), sum({run_ms})
    from windlass_executions x join windlass_jobs j on j.id = x.job_id group by 1, 2, 3
) as both_sides group by task, status, reason having sum(counted) < sum(kept) order by 1, 2, 3

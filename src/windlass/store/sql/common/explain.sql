-- name: leases_by_lane
-- Only leases are indexed, and they are few. A cancelled run that has not stopped has a slot as well.
select worker, lane, task, count(*) filter (where started_at is not null and crashes = 0),
    count(*) filter (where started_at is null), count(*) filter (where started_at is not null and crashes > 0), min(started_at)
from (
    select worker, lane, task, started_at, crashes from windlass_jobs indexed by windlass_jobs_leased
    where token is not null order by id limit :limit
) as leased
group by worker, lane, task order by 1, 2, 3

-- name: ended_runs
-- As `run_minutes`, added up and without the histograms.
select coalesce(sum(completed), 0)::bigint, coalesce(sum(failed), 0)::bigint, coalesce(sum(cancelled), 0)::bigint,
    coalesce(sum(duration_ms), 0)::bigint
from (
    select completed, failed, cancelled, duration_ms from windlass_minutes
    where task = :task::text and minute >= :since::timestamptz
    union all
    select case when status = 'completed' then runs else 0 end, case when status = 'failed' then runs else 0 end,
        case when status = 'cancelled' then runs else 0 end, duration_ms
    from windlass_run_deltas
    where task = :task::text and minute >= :since::timestamptz and reason not in ('released', 'snoozed')
) as both_halves

-- name: newest_letter
select id, error, fingerprint, died_at, closed_at is null from windlass_dead_letters
where job_id = :job_id::bigint order by id desc limit 1

-- name: alike_letters
-- The newest of a kind, up to a bound. A job that came back counts once, by its state now.
with alike as materialized (
    select job_id, task, deaths, first_died_at, died_at, closed_reason
    from windlass_dead_letters indexed by windlass_dead_letters_kinds
    where fingerprint = :fingerprint::text order by died_at desc, id desc limit {most_before}
), returned as materialized (
    select job_id, max(case when closed_reason = 'succeeded' then 1 else 0 end) as has_succeeded
    from (select job_id, closed_reason from alike where task = :task::text and closed_reason is not null limit 1000) as newest
    group by job_id
), fates as materialized (
    select r.has_succeeded, j.state from returned r left join windlass_jobs j on j.id = r.job_id
)
select count(*), coalesce(sum(deaths), 0)::bigint, min(first_died_at), max(died_at), (select count(*) from fates),
    (select count(*) from fates where has_succeeded = 1 or state = 'completed'),
    (select count(*) from fates where has_succeeded = 0 and state = 'failed')
from alike where task = :task::text

-- name: open_alerts
-- At most a few hundred: a rule has a bounded number of them.
select id, rule, subject, message, value, since, raised_at, seen_at, calm_since, cleared_at
from windlass_alerts where cleared_at is null order by id limit :limit

-- name: cleared_alerts
select id, rule, subject, message, value, since, raised_at, seen_at, calm_since, cleared_at
from windlass_alerts indexed by windlass_alerts_cleared where cleared_at is not null order by cleared_at desc, id desc limit :limit

-- name: begin_alert
-- Of two that look at once, one inserts.
insert into windlass_alerts (rule, subject, message, value, since, raised_at, seen_at)
values (:rule, :subject::text, :message::text, :amount::float, {now}, case when :is_raised::boolean then {now} end, {now})
on conflict (rule, subject) where cleared_at is null do nothing
returning id, rule, subject, message, value, since, raised_at, seen_at, calm_since, cleared_at

-- name: move_alert
-- Guarded by what the caller saw: of two that look at once, one raises and one clears.
update windlass_alerts set message = :message::text, value = :amount::float, seen_at = {now},
    raised_at = case when :move::text = 'raise' then {now} else raised_at end,
    calm_since = case when :move::text in ('calm', 'clear') then coalesce(calm_since, {now}) end,
    cleared_at = case when :move::text = 'clear' then {now} end
where id = :id and cleared_at is null and (:move::text <> 'raise' or raised_at is null)
returning id, rule, subject, message, value, since, raised_at, seen_at, calm_since, cleared_at

-- name: forget_alert
delete from windlass_alerts where id = :id and raised_at is null returning id

-- name: prune_alerts
delete from windlass_alerts where id = any(array(
    select id from windlass_alerts where cleared_at is not null and cleared_at < {now} - :keep_for::interval
    order by cleared_at, id limit :limit
))
returning id

-- name: list_silences
select rule, subject, until, reason, created_by, created_at from windlass_alert_silences where until > {now} order by rule, subject

-- name: silence_alerts
insert into windlass_alert_silences (rule, subject, until, reason, created_by, created_at)
values (:rule, :subject::text, {now} + :lasts::interval, :reason::text, :principal::text, {now})
on conflict (rule, subject) do update set
    until = excluded.until, reason = excluded.reason, created_by = excluded.created_by, created_at = excluded.created_at
returning rule, subject, until, reason, created_by, created_at

-- name: unsilence_alerts
delete from windlass_alert_silences where rule = :rule and subject = :subject::text and until > {now}
returning rule, subject, until, reason, created_by, created_at

-- name: prune_silences
delete from windlass_alert_silences where until <= {now} returning rule

-- name: mark_lost_leases
insert into windlass_alert_marks (at, lost_leases) values (:at::timestamptz, :lost) on conflict (at) do nothing returning at

-- name: first_mark
select lost_leases from windlass_alert_marks where at >= :since::timestamptz order by at limit 1

-- name: prune_marks
delete from windlass_alert_marks where at < :since::timestamptz returning at

-- name: alert_runs
-- By task, the runs of the window that begins at :since and those before it. Both halves in one statement, as in run_minutes.
select task, sum(case when minute >= :since::timestamptz then completed else 0 end)::bigint,
    sum(case when minute >= :since::timestamptz then failed else 0 end)::bigint,
    sum(case when minute >= :since::timestamptz then ended else 0 end)::bigint,
    sum(case when minute >= :since::timestamptz then duration_ms else 0 end)::bigint,
    sum(case when minute < :since::timestamptz then ended else 0 end)::bigint,
    sum(case when minute < :since::timestamptz then duration_ms else 0 end)::bigint
from (
    select minute, task, completed, failed, completed + failed + cancelled as ended, duration_ms
    from windlass_minutes where minute >= :after_at::timestamptz and task <> ''
    union all
    select minute, task, case when status = 'completed' then runs else 0 end, case when status = 'failed' then runs else 0 end,
        runs, duration_ms
    from windlass_run_deltas where minute >= :after_at::timestamptz and reason not in ('released', 'snoozed')
) as both_halves group by task order by 1 limit :limit

-- name: long_runs
-- Only leases are indexed, and there are no more of them than slots.
select id, task, worker, started_at from (
    select id, task, worker, started_at from windlass_jobs where token is not null and started_at is not null order by id limit :most
) as started where started_at <= {now} - :older_than::interval order by started_at, id limit :limit

-- name: recurring_runs
-- Of the newest recurring jobs that have ever failed, how the last runs ended.
select j.id, j.name, j.task,
    (select count(*) from (
        select e.status from windlass_executions e where e.job_id = j.id order by e.number desc limit :most
    ) as last_runs where status = 'completed'),
    (select count(*) from (
        select e.status from windlass_executions e where e.job_id = j.id order by e.number desc limit :most
    ) as last_runs where status = 'failed')
from (
    select id, name, task, executions, completed_runs, closed_at, spawn from windlass_jobs indexed by windlass_jobs_recurring
    where cadence is not null order by id desc limit :limit
) as j where j.closed_at is null and not j.spawn and j.executions > j.completed_runs
order by j.id

-- name: recent_deaths
select count(*) from (
    select 1 from windlass_dead_letters where died_at >= :since::timestamptz order by died_at limit :limit
) as died

-- name: job_columns
j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.base_priority, j.run_at, j.slot_at, j.attempt, j.max_attempts,
    j.executions, j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence, j.spawn, j.timeout_us, j.token,
    j.worker, j.claimed_at, j.lease_expires_at, j.started_at, j.finished_at, j.closed_at, j.paused_at, j.held,
    j.stop_requested, j.rerun_at, j.rerun_slot_at, j.name, j.unique_key, j.unique_scope, j.unique_slot, j.child_key, j.subject,
    j.correlation_id, j.parent_id, j.last_error, j.last_error_at, j.last_cursor, j.progress_message, j.progress_count,
    j.result_count, j.target_count, j.last_progress_at, j.done_reason, j.created_at, j.updated_at, b.payload::text,
    b.metadata::text, b.description, b.item_key::text, b.collection, b.created_by, b.declared_by, b.declared_at,
    j.traceparent

-- name: original_fields
'id', j.id, 'type', j.task, 'task', j.task, 'lane', j.lane, 'priority', j.priority, 'base_priority', j.base_priority,
    'attempts', j.attempt, 'max_attempts', j.max_attempts, 'retry', j.retry, 'cadence', j.cadence, 'timeout_us', j.timeout_us,
    'name', j.name, 'unique_key', j.unique_key, 'unique_scope', j.unique_scope, 'subject', j.subject,
    'correlation_id', j.correlation_id, 'parent_id', j.parent_id, 'target_count', j.target_count, 'child_key', j.child_key,
    'collection', b.collection, 'description', b.description, 'created_by', b.created_by

-- name: is_bare
j.slot_at is null and j.max_attempts is null and j.retry = 'task' and j.cadence is null and j.timeout_us is null
    and j.subject is null and j.correlation_id is null and j.parent_id is null and j.last_cursor is null
    and j.progress_count = 0 and j.result_count = 0 and j.target_count is null
    and j.traceparent is null

-- name: job_matches
{list_sliced}
and (:subject::text is null or j.subject = :subject::text)
and (:correlation_id::text is null or j.correlation_id = :correlation_id::text or j.id = :own::bigint or j.parent_id = :own::bigint)
and (:parent_id::bigint is null or j.parent_id = :parent_id::bigint)
and (:since::timestamptz is null or j.created_at >= :since::timestamptz)
and (:is_template::boolean is null or j.spawn = :is_template::boolean)
and (:is_recurring::boolean is null or (j.cadence is not null) = :is_recurring::boolean)
and (:priority::integer is null or j.priority = :priority::integer)
and (:worker::text is null or j.token is not null and j.worker = :worker::text)
and (:error::text is null or j.last_error ilike :error::text escape '\')
and (:search::text is null or j.task ilike :search::text escape '\' or j.name ilike :search::text escape '\' or j.subject ilike :search::text escape '\'
    or j.unique_key ilike :search::text escape '\' or j.last_error ilike :search::text escape '\'
    or (select b.payload::text from windlass_bodies b where b.job_id = j.id) ilike :search::text escape '\')

-- name: is_over
-- For endings that are not decided by the holder.
(:expired_before::timestamptz is null or j.lease_expires_at <= :expired_before::timestamptz or {worker_gone})

-- name: recorded_log
-- What the run that holds the lease had logged when its worker last recorded it.
(select l.log_excerpt from windlass_run_logs l where l.job_id = j.id and l.token = j.token)

-- name: worker_columns
id, kind, host, pid, version, pools::text, tasks::text, running, started_at, seen_at, stopped_at,
    stopped_at is null and seen_at > {now} - :offline_after::interval, loop_blocks, app_version, paused_at, paused_by,
    cpu_percent, memory_mb

-- name: worker_gone
-- Its worker reported its stop, or its process was found to be gone: the lease will not be renewed.
exists (select 1 from windlass_workers w where w.id = j.worker and w.stopped_at is not null)

-- name: enough
-- A worker decides by the limit it was claimed with, so a lower one must leave room for the attempt that may follow.
(:max_attempts::integer > j.attempt or :max_attempts::integer >= j.max_attempts)

-- name: breaker_due
case b.state when 'open' then b.probe_at <= {now} when 'half_open' then not ({probe_alive}) end

-- name: breaker_columns
b.name, b.state, b.failures, b.successes, b.threshold, b.open_us, b.last_failure_at, b.opened_at, b.probe_at,
    b.half_opened_at, b.probe_job_id, b.probe_token, b.last_probe_job_id, b.is_forced, b.updated_at, {probe_alive}, {now}

-- name: prunable
-- A schedule, a key that is held for ever, a lease that has not ended and an open letter keep their job.
j.cadence is null and j.token is null and j.unique_scope is distinct from 'forever' and not exists (
    select 1 from windlass_dead_letters d where d.job_id = j.id and d.closed_at is null and d.acknowledged_at is null
)

-- name: audit_columns
id, at, principal, action, target, outcome, details::text, request_id, chain, place

-- name: state_rank
case j.state when 'scheduled' then 1 when 'pending' then 2 when 'running' then 3 when 'paused' then 4 when 'completed' then 5
                when 'failed' then 6 else 7 end

-- name: letter_columns
d.id, d.job_id, d.task, d.lane, d.original_job::text, d.error, d.details::text, d.fingerprint, d.deaths, d.first_died_at, d.died_at,
    d.acknowledged_at, d.acknowledged_by, d.note, d.closed_at, d.closed_reason, d.edited_payload::text, d.edited_by, d.edited_at,
    d.notes::text, d.version

-- name: letter_facts
d.id, d.task, d.fingerprint, d.died_at, d.acknowledged_at, d.closed_at

-- name: letters_tail
    ) as d
), page as materialized (
    select c.id, c.died_at from candidates c
    where c.is_match and (c.died_at, c.id) < (:edge_at::timestamptz, :edge_id::bigint)
    order by c.died_at desc, c.id desc limit :limit::integer
), head as materialized (
    select count(*) as looked, count(*) filter (where is_match) as matched,
        (select c.died_at from candidates c order by c.died_at, c.id limit 1) as last_at,
        (select c.id from candidates c order by c.died_at, c.id limit 1) as last_id
    from candidates
)
select h.looked, h.matched, h.last_at, h.last_id, {letter_columns}
from head h left join page p on true left join windlass_dead_letters d on d.id = p.id
order by d.died_at desc, d.id desc

-- name: letter_groups
-- A group is new when its first letter is: of the newest version, or without one since that version is known.
, newest_of as materialized (
    select fingerprint, died_at, id, task, row_number() over (partition by fingerprint order by died_at desc, id desc) as place
    from meant
), counted as materialized (
    select fingerprint, count(*) as letters, sum(deaths) as deaths,
        count(*) filter (where died_at >= {now} - :hour::interval) as in_hour,
        count(*) filter (where died_at >= {now} - :day::interval) as in_day,
        count(*) filter (where died_at >= {now} - :week::interval) as in_week
    from meant group by fingerprint
), kinds as materialized (
    select n.fingerprint, c.letters, c.deaths, n.died_at, n.id, n.task, c.in_hour, c.in_day, c.in_week
    from newest_of n join counted c on c.fingerprint = n.fingerprint where n.place = 1
), firsts as materialized (
    select k.fingerprint, k.letters, k.deaths, k.died_at, k.id, k.task, k.in_hour, k.in_day, k.in_week, (
        select d.id from windlass_dead_letters d indexed by windlass_dead_letters_groups
        where d.fingerprint >= k.fingerprint and (d.fingerprint, d.id) > (k.fingerprint, 0)
        order by d.fingerprint, d.id limit 1
    ) as first_id
    from kinds k
), last_deploy as materialized (
    select v.version, v.first_seen_at from windlass_versions v order by v.first_seen_at desc, v.version desc limit 1
), marked as materialized (
    select k.fingerprint, k.letters, k.deaths, k.died_at, k.id, k.task, k.in_hour, k.in_day, k.in_week, f.first_died_at, f.version,
        coalesce(case when f.version is null then f.first_died_at >= l.first_seen_at else f.version = l.version end, false) as is_new
    from firsts k join windlass_dead_letters f on f.id = k.first_id left join last_deploy l on true
)
select n.looked, g.fingerprint, g.letters, g.deaths::bigint, g.died_at, g.id, g.task,
    (select d.error from windlass_dead_letters d where d.id = g.id),
    g.in_hour, g.in_day, g.in_week, g.first_died_at, g.version, g.is_new
from (select count(*) as looked from newest) as n
left join marked g on :is_new::boolean is null or g.is_new = :is_new::boolean
order by g.died_at desc, g.id desc limit :limit::integer

-- name: page_columns
p.id, p.source_id, p.url, p.title, substr(p.text, 1, 300), p.status, p.etag, p.last_modified, p.fetched_at, p.changed_at, p.created_at

-- name: feed_columns
f.id, f.url, f.fetch_url, f.title, f.site_url, f.etag, f.last_modified, f.job_id, f.next_fetch_at, f.last_fetched_at,
    f.consecutive_failures, f.last_error, f.gone_at, f.subscribers,
    f.websub_hub, f.websub_topic, f.websub_state, f.websub_token, f.websub_secret, f.websub_asked_at, f.websub_expires_at,
    f.created_at, f.updated_at

-- name: entry_columns
e.id, e.feed_id, e.guid, e.title, e.link, e.author, e.summary, e.published_at, e.created_at, e.updated_at

-- name: keeps_hub
(not :is_changed::boolean or f.websub_hub is not distinct from :hub::text and f.websub_topic is not distinct from :topic::text)

-- name: run_parts
-- The two histograms of each minute; what is counted besides stands in the first.
select minute, task, lane, 'wait' as kind, wait_bucket as bucket, sum(runs) as runs,
    coalesce(sum(runs) filter (where status = 'completed'), 0) as completed,
    coalesce(sum(runs) filter (where status = 'failed'), 0) as failed,
    coalesce(sum(runs) filter (where status = 'cancelled'), 0) as cancelled,
    sum(wait_ms) as wait_ms, sum(duration_ms) as duration_ms
from counted group by minute, task, lane, wait_bucket
union all
select minute, task, lane, 'run', run_bucket, sum(runs), 0, 0, 0, 0, 0 from counted group by minute, task, lane, run_bucket

-- name: canary_columns
c.id, c.state, c.task, c.fingerprint, c.size, c.runs::text, c.succeeded, c.requeued, c.refused, c.after_letter, c.until_letter,
    c.reason, c.created_by, c.created_at, c.updated_at, c.ended_at

-- name: has_pending
-- Written exactly as in the two indexes and in their order, so that they are used.
((select p.lane from windlass_jobs p where p.state = 'pending' and p.crashes = 0 order by p.lane, p.task limit 1) is not null
    or (select p.lane from windlass_jobs p where p.state = 'pending' and p.crashes > 0 order by p.lane, p.task limit 1) is not null)

-- name: has_leases
(select h.id from windlass_jobs h where h.token is not null order by h.id limit 1) is not null

-- name: doctor_jobs
-- Everything about a job in one statement, so that a job that moves meanwhile is not reported. Instants are only tested here:
-- one that is out of range could not be read. The ranges keep every page to its part of the indexes.
with page as materialized (
    select id from windlass_jobs where id > :after order by id limit :limit
), runs as materialized (
    select job_id, count(*) as kept, count(distinct number) as numbers, count(distinct token) as tokens,
        min(number) as oldest, max(number) as newest
    from windlass_executions where job_id > :after and job_id <= (select max(id) from page) group by job_id
), letters as materialized (
    select job_id, count(*) filter (where closed_at is null) as standing,
        count(*) filter (where closed_at is null and acknowledged_at is null) as open
    from windlass_dead_letters where job_id > :after and job_id <= (select max(id) from page) group by job_id
)
select j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.base_priority, j.attempt, j.max_attempts, j.executions,
    j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence, j.spawn, j.timeout_us, j.token, j.worker, j.held,
    j.stop_requested, j.name, j.unique_key, j.unique_scope, j.unique_slot, j.progress_count, j.result_count, j.target_count,
    j.done_reason, j.slot_at is not null, j.claimed_at is not null, j.lease_expires_at is not null, j.started_at is not null,
    j.closed_at is not null, j.paused_at is not null, j.rerun_at is not null, j.rerun_slot_at is not null,
    j.run_at between 0 and 253402214400000000,
    coalesce(j.lease_expires_at between 0 and 253402214400000000, false),
    max(coalesce(j.slot_at, 0), coalesce(j.claimed_at, 0), coalesce(j.started_at, 0), coalesce(j.finished_at, 0),
        coalesce(j.closed_at, 0), coalesce(j.paused_at, 0), coalesce(j.rerun_at, 0), coalesce(j.rerun_slot_at, 0),
        coalesce(j.last_error_at, 0), coalesce(j.last_progress_at, 0), j.created_at, j.updated_at) <= 253402214400000000,
    coalesce(j.lease_expires_at >= j.claimed_at, true), coalesce(j.finished_at >= j.started_at, true),
    j.spawn in (0, 1) and j.held in (0, 1) and j.stop_requested in (0, 1),
    (select count(*) from windlass_bodies b where b.job_id = j.id),
    coalesce(r.kept, 0), coalesce(r.numbers, 0), coalesce(r.tokens, 0), coalesce(r.oldest, 0), coalesce(r.newest, 0),
    case when j.token is null then 0
        else (select count(*) from windlass_executions x where x.job_id = j.id and x.token = j.token) end,
    exists (select 1 from windlass_executions x
        where x.job_id = j.id and x.number = j.executions and x.started_at = j.started_at),
    coalesce(l.standing, 0), coalesce(l.open, 0), coalesce(j.closed_at < {now} - :kept_dead, false)
from windlass_jobs j left join runs r on r.job_id = j.id left join letters l on l.job_id = j.id
where j.id > :after and j.id <= (select max(id) from page) order by j.id

-- name: doctor_bodies
select b.job_id, b.payload, b.metadata, b.item_key, exists (select 1 from windlass_jobs j where j.id = b.job_id)
from windlass_bodies b where b.job_id > :after order by b.job_id limit :limit

-- name: doctor_executions
select x.job_id, x.number, x.attempt, x.wait_ms, x.status, x.reason, x.finished_at >= x.started_at,
    json_valid(coalesce(x.metadata, 'null')) and json_valid(coalesce(x.result, 'null')),
    exists (select 1 from windlass_jobs j where j.id = x.job_id)
from windlass_executions x where (x.job_id, x.number) > (:after, :after_number) order by x.job_id, x.number limit :limit

-- name: doctor_letters
select d.id, d.job_id, d.deaths, d.acknowledged_at is not null, d.acknowledged_by is not null, d.closed_at is not null,
    d.closed_reason, d.died_at >= d.first_died_at, json_valid(d.original_job) and json_valid(coalesce(d.details, 'null')),
    exists (select 1 from windlass_jobs j where j.id = d.job_id)
from windlass_dead_letters d where d.id > :after order by d.id limit :limit

-- name: doctor_server
-- What is in force on this connection, by SQLite's own names.
select 'server_version', sqlite_version()
union all select 'journal_mode', journal_mode from pragma_journal_mode
union all select 'synchronous', synchronous from pragma_synchronous
union all select 'page_size', page_size from pragma_page_size
union all select 'page_count', page_count from pragma_page_count
union all select 'freelist_count', freelist_count from pragma_freelist_count

-- name: doctor_objects
-- Indexes and triggers of our tables; SQLite has no way to put one out of use.
select type, name, true from sqlite_master where type in ('index', 'trigger') and name like 'windlass\_%' escape '\'

-- name: doctor_sessions
-- SQLite does not record which processes have the file open.
select '', '', 0 where false

-- name: doctor_tables
-- Estimated by first and last number: no table is read, and rows that were deleted in between are counted too.
select name, coalesce(last - first + 1, 0), 0, 0, false, -1 from (
    select 'windlass_audit' as name, (select min(id) from windlass_audit) as first, (select max(id) from windlass_audit) as last
    union all
    select 'windlass_breaker_events', (select min(id) from windlass_breaker_events), (select max(id) from windlass_breaker_events)
    union all
    select 'windlass_entries', (select min(rowid) from windlass_entries), (select max(rowid) from windlass_entries)
    union all
    select 'windlass_idempotency', (select min(rowid) from windlass_idempotency), (select max(rowid) from windlass_idempotency)
    union all
    select 'windlass_items', (select min(id) from windlass_items), (select max(id) from windlass_items)
    union all
    select 'windlass_pages', (select min(id) from windlass_pages), (select max(id) from windlass_pages)
) as tables order by name

-- name: doctor_file
-- Reads the whole file, and reports what is damaged.
select quick_check from pragma_quick_check where quick_check <> 'ok'

-- name: lock_recount
-- The transaction has the file to itself.
select ''

-- name: add_counts
insert into windlass_counts (task, lane, state, wait_reason, jobs)
select c.value ->> 'task', c.value ->> 'lane', c.value ->> 'state', c.value ->> 'wait_reason', c.value ->> 'jobs'
from json_each(:batch) as c where true
on conflict (task, lane, state, wait_reason) do update set jobs = jobs + excluded.jobs
returning jobs

-- name: add_totals
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select t.value ->> 'task', t.value ->> 'status', t.value ->> 'reason', t.value ->> 'runs', t.value ->> 'wait_ms',
    t.value ->> 'duration_ms'
from json_each(:batch) as t where true
on conflict (task, status, reason) do update set runs = runs + excluded.runs, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms
returning runs

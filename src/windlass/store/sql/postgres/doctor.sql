-- name: doctor_jobs
-- Everything about a job in one statement, so that a job that moves meanwhile is not reported. Instants are only tested here:
-- one that is out of range could not be read. The ranges keep every page to its part of the indexes; so do counts in place of
-- `exists`, which the planner would answer by hashing the whole table again for each page.
with page as materialized (
    select id from windlass_jobs where id > :after::bigint order by id limit :limit::integer
), runs as materialized (
    select job_id, count(*) as kept, count(distinct number) as numbers, count(distinct token) as tokens,
        min(number) as oldest, max(number) as newest
    from windlass_executions where job_id > :after::bigint and job_id <= (select max(id) from page) group by job_id
), letters as materialized (
    select job_id, count(*) filter (where closed_at is null) as standing,
        count(*) filter (where closed_at is null and acknowledged_at is null) as open
    from windlass_dead_letters where job_id > :after::bigint and job_id <= (select max(id) from page) group by job_id
)
select j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.base_priority, j.attempt, j.max_attempts, j.executions,
    j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence, j.spawn, j.timeout_us, j.token, j.worker, j.held,
    j.stop_requested, j.name, j.unique_key, j.unique_scope, j.unique_slot, j.progress_count, j.result_count, j.target_count,
    j.done_reason, j.slot_at is not null, j.claimed_at is not null, j.lease_expires_at is not null, j.started_at is not null,
    j.closed_at is not null, j.paused_at is not null, j.rerun_at is not null, j.rerun_slot_at is not null,
    j.run_at between timestamptz 'epoch' and timestamptz '9999-12-31 00:00:00+00',
    coalesce(j.lease_expires_at between timestamptz 'epoch' and timestamptz '9999-12-31 00:00:00+00', false),
    greatest(j.slot_at, j.claimed_at, j.started_at, j.finished_at, j.closed_at, j.paused_at, j.rerun_at, j.rerun_slot_at,
        j.last_error_at, j.last_progress_at, j.created_at, j.updated_at) <= timestamptz '9999-12-31 00:00:00+00',
    coalesce(j.lease_expires_at >= j.claimed_at, true), coalesce(j.finished_at >= j.started_at, true),
    true,
    (select count(*) from windlass_bodies b where b.job_id = j.id),
    coalesce(r.kept, 0), coalesce(r.numbers, 0), coalesce(r.tokens, 0), coalesce(r.oldest, 0), coalesce(r.newest, 0),
    case when j.token is null then 0
        else (select count(*) from windlass_executions x where x.job_id = j.id and x.token = j.token) end,
    (select count(*) from windlass_executions x
        where x.job_id = j.id and x.number = j.executions and x.started_at = j.started_at) > 0,
    coalesce(l.standing, 0), coalesce(l.open, 0), coalesce(j.closed_at < {now} - :kept_dead::interval, false)
from windlass_jobs j left join runs r on r.job_id = j.id left join letters l on l.job_id = j.id
where j.id > :after::bigint and j.id <= (select max(id) from page) order by j.id

-- name: doctor_bodies
select b.job_id, b.payload::text, b.metadata::text, b.item_key::text, (select count(*) from windlass_jobs j where j.id = b.job_id) > 0
from windlass_bodies b where b.job_id > :after::bigint order by b.job_id limit :limit::integer

-- name: doctor_executions
select x.job_id, x.number, x.attempt, x.wait_ms, x.status, x.reason, x.finished_at >= x.started_at,
    true,
    (select count(*) from windlass_jobs j where j.id = x.job_id) > 0
from windlass_executions x where (x.job_id, x.number) > (:after::bigint, :after_number::integer)
order by x.job_id, x.number limit :limit::integer

-- name: doctor_letters
select d.id, d.job_id, d.deaths, d.acknowledged_at is not null, d.acknowledged_by is not null, d.closed_at is not null,
    d.closed_reason, d.died_at >= d.first_died_at, true,
    (select count(*) from windlass_jobs j where j.id = d.job_id) > 0
from windlass_dead_letters d where d.id > :after::bigint order by d.id limit :limit::integer

-- name: doctor_server
-- What is in force in this session, by the server's own names; one it does not know is left out.
select name, setting from pg_settings where name in (
    'server_version', 'server_version_num', 'statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout',
    'idle_session_timeout', 'transaction_timeout', 'autovacuum', 'max_connections', 'superuser_reserved_connections'
)
union all select 'is_standby', pg_is_in_recovery()::text
union all select 'connections', count(*)::text from pg_stat_activity where backend_type = 'client backend'

-- name: doctor_objects
-- Indexes and triggers of our tables, and whether they are in use.
with ours as materialized (
    select c.oid from pg_class c where c.relname like 'windlass\_%' and c.relkind = 'r'
      and c.relnamespace = (select k.relnamespace from pg_class k where k.oid = to_regclass('windlass_jobs'))
)
select 'index', c.relname::text, i.indisvalid and i.indisready
from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid in (select oid from ours)
union all
select 'trigger', t.tgname::text, t.tgenabled in ('O', 'A')
from pg_trigger t where not t.tgisinternal and t.tgrelid in (select oid from ours)

-- name: doctor_sessions
-- Open transactions, the oldest first: what ended after their beginning cannot be cleaned away. Those of other users may be hidden.
select kind, who, seconds from (
    (select 1 as place, 'transaction' as kind, a.pid || ', ' || coalesce(nullif(a.application_name, ''), a.usename, '?') as who,
        floor(extract(epoch from clock_timestamp() - a.xact_start))::bigint as seconds
     from pg_stat_activity a
     where a.datname = current_database() and a.xact_start is not null and a.pid <> pg_backend_pid()
       and a.state is distinct from 'idle in transaction' and a.backend_type = 'client backend'
     order by a.xact_start limit 3)
    union all
    (select 2, 'idle', a.pid || ', ' || coalesce(nullif(a.application_name, ''), a.usename, '?'),
        floor(extract(epoch from clock_timestamp() - a.xact_start))::bigint
     from pg_stat_activity a
     where a.datname = current_database() and a.xact_start is not null and a.state = 'idle in transaction'
     order by a.xact_start limit 3)
    union all
    (select 3, 'prepared', p.gid, floor(extract(epoch from clock_timestamp() - p.prepared))::bigint
     from pg_prepared_xacts p where p.database = current_database() order by p.prepared limit 3)
) as open order by place, seconds desc

-- name: doctor_tables
-- From the server's own statistics: no table is read. -1 is never.
select s.relname::text, s.n_live_tup, s.n_dead_tup, pg_total_relation_size(s.relid),
    coalesce(array_to_string(c.reloptions, ',') ~* 'autovacuum_enabled=(false|off|no|0)', false),
    coalesce(floor(extract(epoch from clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)))::bigint, -1)
from pg_stat_user_tables s join pg_class c on c.oid = s.relid
where s.relname like 'windlass\_%'
  and c.relnamespace = (select k.relnamespace from pg_class k where k.oid = to_regclass('windlass_jobs'))
order by s.relname

-- name: doctor_file
-- A server checks its own files.
select '' where false

-- name: lock_recount
-- One recount at a time: two would both add what is missing.
select pg_advisory_xact_lock(7301946200283)::text

-- name: add_counts
insert into windlass_counts (task, lane, state, wait_reason, jobs)
select c.task, c.lane, c.state, c.wait_reason, c.jobs
from json_to_recordset(:batch::json) as c (task text, lane text, state text, wait_reason text, jobs bigint) order by 1, 2, 3, 4
on conflict (task, lane, state, wait_reason) do update set jobs = windlass_counts.jobs + excluded.jobs
returning jobs

-- name: add_totals
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select t.task, t.status, t.reason, t.runs, t.wait_ms, t.duration_ms
from json_to_recordset(:batch::json) as t (task text, status text, reason text, runs bigint, wait_ms bigint, duration_ms bigint)
order by 1, 2, 3
on conflict (task, status, reason) do update set runs = windlass_totals.runs + excluded.runs,
    wait_ms = windlass_totals.wait_ms + excluded.wait_ms, duration_ms = windlass_totals.duration_ms + excluded.duration_ms
returning runs

-- name: list_writers
-- The transactions that write jobs at this moment, claims among them: the lock on the table is taken before the claim's snapshot and kept
-- until its end.
select distinct virtualtransaction from pg_locks
where locktype = 'relation' and relation = 'windlass_jobs'::regclass and mode = 'RowExclusiveLock' and granted
  and database = (select oid from pg_database where datname = current_database()) and pid is distinct from pg_backend_pid()
  and (:writers::json is null or virtualtransaction in (select json_array_elements_text(:writers::json)))

-- name: change_breaker
update windlass_breakers b set
    state = :state, failures = :failures, successes = :successes, threshold = :threshold, open_us = :open_us,
    last_failure_at = :last_failure_at::timestamptz, opened_at = :opened_at::timestamptz, probe_at = :probe_at::timestamptz,
    half_opened_at = :half_opened_at::timestamptz, probe_job_id = :probe_job_id::bigint, probe_token = :probe_token::bigint,
    last_probe_job_id = :last_probe_job_id::bigint, is_forced = :is_forced::boolean, updated_at = {now}
where b.name = :name
returning {breaker_columns}

-- name: claim_probe
-- One job of one slice, and not the one that the last probe was made with, so that a poison job is not every probe.
update windlass_jobs j set {taken}
where j.ctid = any(array(
    select k.ctid from windlass_jobs k
    where k.state = 'pending' and k.crashes = 0 and k.lane = :lane and k.task = :task and k.id <> :avoid::bigint
      and (select version from windlass_gates) = :version
    order by ~k.priority, k.run_at, k.id limit 1 for update skip locked
))
returning {claimed_columns}

-- name: claim_suspect_probe
-- The same where only suspects wait: otherwise their breaker would never be tried.
update windlass_jobs j set {taken}
where j.ctid = any(array(
    select k.ctid from windlass_jobs k
    where k.state = 'pending' and k.crashes > 0 and k.lane = :lane and k.task = :task and k.id <> :avoid::bigint
      and (select version from windlass_gates) = :version
    order by ~k.priority, k.run_at, k.id limit 1 for update skip locked
))
returning {claimed_columns}

-- name: stale_tasks
-- Read before anything is written: workers that start together and declare the same tasks only read.
select s.name, s.breaker is distinct from t.breaker
from json_to_recordset(:tasks::json) as s (name text, lane text, options text, breaker text)
left join windlass_tasks t on t.name = s.name
where t.name is null or not t.is_declared or t.lane <> s.lane or t.options::text <> s.options
   or t.breaker is distinct from s.breaker or t.seen_at < {now} - interval '1 minute'
order by s.name

-- name: declare_tasks
insert into windlass_tasks (name, lane, options, breaker, is_declared, first_seen_at, seen_at)
select s.name, s.lane, s.options::json, s.breaker, true, {now}, {now}
from json_to_recordset(:tasks::json) as s (name text, lane text, options text, breaker text) order by s.name
on conflict (name) do update set
    lane = excluded.lane, options = excluded.options, breaker = excluded.breaker, is_declared = true, seen_at = excluded.seen_at
returning name

-- name: list_writers
-- Always none: the transaction that paused had the file to itself.
select '' where :writers is null and false

-- name: change_breaker
update windlass_breakers set
    state = :state, failures = :failures, successes = :successes, threshold = :threshold, open_us = :open_us,
    last_failure_at = :last_failure_at, opened_at = :opened_at, probe_at = :probe_at, half_opened_at = :half_opened_at,
    probe_job_id = :probe_job_id, probe_token = :probe_token, last_probe_job_id = :last_probe_job_id, is_forced = :is_forced,
    updated_at = {now}
where name = :name;
select {breaker_columns} from windlass_breakers b where b.name = :name

-- name: claim_probe
-- One job of one slice, and not the one that the last probe was made with, so that a poison job is not every probe.
update windlass_jobs set {taken}
where id = (
    select id from windlass_jobs indexed by windlass_jobs_pending
    where state = 'pending' and crashes = 0 and lane = :lane and task = :task and id <> :avoid
      and (select version from windlass_gates) = :version
    order by priority desc, run_at, id limit 1
)
returning {claimed_columns}

-- name: claim_suspect_probe
-- The same where only suspects wait: otherwise their breaker would never be tried.
update windlass_jobs set {taken}
where id = (
    select id from windlass_jobs indexed by windlass_jobs_suspects
    where state = 'pending' and crashes > 0 and lane = :lane and task = :task and id <> :avoid
      and (select version from windlass_gates) = :version
    order by priority desc, run_at, id limit 1
)
returning {claimed_columns}

-- name: stale_tasks
-- Read before anything is written: workers that start together and declare the same tasks only read.
select s.value ->> 'name' as name, s.value ->> 'breaker' is not t.breaker
from json_each(:tasks) as s left join windlass_tasks t on t.name = s.value ->> 'name'
where t.name is null or not t.is_declared or t.lane <> s.value ->> 'lane' or t.options <> s.value ->> 'options'
   or t.breaker is not s.value ->> 'breaker' or t.seen_at < {now} - 60000000
order by 1

-- name: declare_tasks
insert into windlass_tasks (name, lane, options, breaker, is_declared, first_seen_at, seen_at)
select value ->> 'name', value ->> 'lane', value ->> 'options', value ->> 'breaker', 1, {now}, {now} from json_each(:tasks)
where true order by 1
on conflict (name) do update set
    lane = excluded.lane, options = excluded.options, breaker = excluded.breaker, is_declared = 1, seen_at = excluded.seen_at
returning name

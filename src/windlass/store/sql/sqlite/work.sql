-- name: contact
-- Contact is being able to write: while the disk is full, no worker can renew and leases of running workers end.
insert into windlass_contact (id, touched_at) values (1, {now})
on conflict (id) do update set touched_at = excluded.touched_at returning touched_at

-- name: insert_jobs
-- A batch is groups of jobs that share their options and differ in their payload: taking one value out of JSON costs as much
-- as storing it. Ids are counted on from the sequence, so that the body can carry the same one; no other process writes in this
-- transaction. A row whose unique key is taken is left out of the answer.
with g as materialized (
    select value ->> 'ord' as ord, value -> 'rows' as rows, value ->> 'task' as task, value ->> 'lane' as lane,
        coalesce(value ->> 'priority', 0) as priority,
        coalesce(value ->> 'run_us', {now} + (value ->> 'delay_us'), {now}) as run_at, value ->> 'slot_us' as slot_at,
        value ->> 'max_attempts' as max_attempts, coalesce(value ->> 'retry', 'task') as retry, value ->> 'cadence' as cadence,
        coalesce(value ->> 'spawn', 0) as spawn, value ->> 'timeout_us' as timeout_us, value ->> 'name' as name,
        value ->> 'unique_key' as unique_key, value ->> 'unique_scope' as unique_scope, value ->> 'child_key' as child_key,
        value ->> 'subject' as subject, value ->> 'correlation_id' as correlation_id, value ->> 'parent_id' as parent_id,
        value ->> 'target_count' as target_count, value ->> 'traceparent' as traceparent
    from json_each(:jobs)
)
insert into windlass_jobs (
    id, task, lane, state, wait_reason, priority, base_priority, run_at, slot_at, max_attempts, retry, cadence, spawn,
    timeout_us, name, unique_key, unique_scope, unique_slot, child_key, subject, correlation_id, parent_id, target_count,
    traceparent, created_at, updated_at
)
select :last_id + 1 + g.ord + p.key, task, lane,
    case when spawn or run_at > {now} then 'scheduled' else 'pending' end,
    case when cadence is not null then 'recurrence' when run_at > {now} then 'delay' else 'new' end,
    priority, priority, run_at, case when cadence is not null then coalesce(slot_at, run_at) end, max_attempts, retry, cadence,
    spawn, timeout_us, name, unique_key, unique_scope, unique_key, child_key, subject, correlation_id, parent_id, target_count,
    traceparent, {now}, {now}
from g cross join json_each(g.rows) as p
where true
on conflict do nothing;
with g as materialized (
    select value ->> 'ord' as ord, value -> 'rows' as rows, value -> 'metadata' as metadata,
        value ->> 'description' as description, value -> 'item_key' as item_key, value ->> 'collection' as collection,
        value ->> 'created_by' as created_by, value ->> 'declared_by' as declared_by
    from json_each(:jobs)
)
insert into windlass_bodies (job_id, payload, metadata, description, item_key, collection, created_by, declared_by, declared_at)
select :last_id + 1 + g.ord + p.key, p.value, metadata, description, item_key, collection, created_by, declared_by,
    case when declared_by is not null then {now} end
from g cross join json_each(g.rows) as p
where exists (select 1 from windlass_jobs where id = :last_id + 1 + g.ord + p.key);
select id - :last_id - 1, id, {now} from windlass_jobs where id > :last_id order by id

-- name: insert_plain_row
({i}, :payload_{i})

-- name: insert_plain
-- What `insert_jobs` does to jobs that share all options but the payload and have no key.
with p (place, payload) as (values {rows})
insert into windlass_jobs (
    id, task, lane, state, wait_reason, priority, base_priority, run_at, retry, created_at, updated_at
)
select :last_id + 1 + p.place, :task, :lane, 'pending', 'new', :priority, :priority, {now}, :retry, {now}, {now}
from p where p.payload is not null;
with p (place, payload) as (values {rows})
insert into windlass_bodies (job_id, payload) select :last_id + 1 + p.place, p.payload from p where p.payload is not null;
select id - :last_id - 1, id, {now} from windlass_jobs where id > :last_id order by id

-- name: find_holders
-- Who holds the keys that an insert left out. Each is looked up, also where ANALYZE has found no holder.
select s.value ->> 'ord', j.id, j.state from json_each(:keys) as s
cross join windlass_jobs j on j.task = s.value ->> 'task' and j.unique_slot = s.value ->> 'unique_key'
union
select s.value ->> 'ord', j.id, j.state from json_each(:keys) as s
cross join windlass_jobs j on j.name = s.value ->> 'name'

-- name: replace_waiting
-- The holder takes over payload, priority and time while it waits; once it runs, what it runs with is settled.
update windlass_bodies set payload = s.value -> 'payload'
from json_each(:jobs) as s join windlass_jobs j on j.id = s.value ->> 'id'
where windlass_bodies.job_id = j.id and j.state in ('scheduled', 'pending', 'paused');
update windlass_jobs as j set
    priority = s.priority, base_priority = s.priority, run_at = s.run_at,
    slot_at = case when j.cadence is not null then s.run_at end,
    state = case when j.state = 'paused' then j.state when j.spawn or s.run_at > {now} then 'scheduled' else 'pending' end,
    wait_reason = case when j.cadence is not null then j.wait_reason when s.run_at > {now} then 'delay' else 'new' end,
    updated_at = {now}
from (
    select value ->> 'id' as id, coalesce(value ->> 'priority', 0) as priority,
        coalesce(value ->> 'run_us', {now} + (value ->> 'delay_us'), {now}) as run_at
    from json_each(:jobs)
) as s
where j.id = s.id and j.state in ('scheduled', 'pending', 'paused')
returning id

-- name: rerun_holders
update windlass_jobs as j set rerun_at = coalesce(min(j.rerun_at, {now}), {now}), updated_at = {now}
where j.id in (select value from json_each(:ids)) and j.state = 'running'
returning id

-- name: slices
-- A loose index scan: one look-up for each lane and task with pending work, however long the backlog behind it is.
-- A breaker that is due to be tried lets its slices through, marked; any other that is not closed holds them back.
{pending_heads}
select gates.version, open.lane, open.task, open.priority, open.run_at, open.breaker, coalesce(open.is_suspect, 0)
from windlass_gates gates left join (
    select h.lane as lane, h.task as task, h.priority as priority, h.run_at as run_at, b.name as breaker,
        h.is_suspect as is_suspect
    from (
        select h.lane, h.task,
        (select n.priority from windlass_jobs n where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task
         order by n.priority desc, n.run_at, n.id limit 1) as priority,
        (select n.run_at from windlass_jobs n where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task
         order by n.priority desc, n.run_at, n.id limit 1) as run_at, 0 as is_suspect
        from heads h
        union all select h.lane, h.task,
        (select n.priority from windlass_jobs n where n.state = 'pending' and n.crashes > 0 and n.lane = h.lane and n.task = h.task
         order by n.priority desc, n.run_at, n.id limit 1) as priority,
        (select n.run_at from windlass_jobs n where n.state = 'pending' and n.crashes > 0 and n.lane = h.lane and n.task = h.task
         order by n.priority desc, n.run_at, n.id limit 1) as run_at, 1
        from suspects h
    ) as h
    left join windlass_tasks t on t.name = h.task
    left join windlass_breakers b on b.name = t.breaker and b.state <> 'closed'
    where h.lane is not null
      and not exists (select 1 from windlass_lanes l where l.name in (h.lane, '*') and l.paused_at is not null)
      and t.paused_at is null and (b.name is null or {breaker_due})
) open on true
order by open.priority desc, open.run_at

-- name: claim_arm
-- From where the slice began when it was looked at, as on PostgreSQL. The signs keep these conditions out of the choice of the plan.
select priority, run_at, id from windlass_jobs indexed by windlass_jobs_pending
where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i}
  and (+priority < :priority_{i} or +priority = :priority_{i} and +run_at >= :run_at_{i})

-- name: claim_suspect_arm
select priority, run_at, id from windlass_jobs indexed by windlass_jobs_suspects
where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i}

-- name: claim_any_arm
select priority, run_at, id from windlass_jobs indexed by windlass_jobs_pending
where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i}
union all select priority, run_at, id from windlass_jobs indexed by windlass_jobs_suspects
where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i}

-- name: renew
-- Not indexed, so by the row's number: after an ANALYZE while nothing ran, the planner takes the index of leased jobs to be
-- empty, and the whole of it would be compared with the whole batch.
-- A cancelled run that had not started stays so: only its stopped report may record a start, and writes the execution.
update windlass_jobs as j not indexed set
    lease_expires_at = max(j.lease_expires_at, {now} + :lease),
    started_at = case when j.state = 'running' then coalesce(j.started_at, s.value ->> 'started_us') else j.started_at end
from json_each(:leases) as s where j.id = s.value ->> 'id' and j.token = s.value ->> 'token'
returning id, token, stop_requested or state = 'cancelled', state = 'cancelled', lease_expires_at, 0

-- name: vouch
-- No row is ever locked here, so there is nothing to vouch for.
select j.id, j.token, max(j.lease_expires_at, {now} + :lease) from json_each(:leases) as s
join windlass_jobs j on j.id = s.value ->> 'id' and j.token = s.value ->> 'token' where false

-- name: progress
update windlass_jobs as j set
    progress_count = coalesce(:count, j.progress_count), last_cursor = coalesce(:cursor, j.last_cursor),
    progress_message = coalesce(:message, j.progress_message), last_progress_at = {now},
    started_at = coalesce(j.started_at, {now}), updated_at = {now}
where j.id = :id and j.token = :token and j.state = 'running'
returning id

-- name: record_logs
insert into windlass_run_logs (job_id, token, log_excerpt)
select j.id, j.token, s.value ->> 'log_excerpt' from json_each(:logs) as s
cross join windlass_jobs j on j.id = s.value ->> 'id' and j.token = s.value ->> 'token' where j.state = 'running'
on conflict (job_id, token) do update set log_excerpt = excluded.log_excerpt
returning job_id

-- name: finish
-- Four statements of one transaction over one document; the update comes last, because it takes away what the others are
-- guarded by. Constant conditions (:any_…) are tested before the scan. A batch is groups of endings that are alike but for
-- their job, times and result: taking one value out of JSON costs as much as storing it.
{finish}

-- name: complete_row
(:id_{i}, :token_{i}, :started_us_{i}, :finished_us_{i}, :cpu_time_ms_{i}, :result_{i})

-- name: complete
-- What `finish` does to a run that came back with nothing to decide. Whatever makes more of it is left to `finish`: a rule, a
-- rerun, a lease that is gone. Not indexed for the reason that `renew` has.
with f (id, token, started_us, finished_us, cpu_time_ms, result) as (values {rows})
insert into windlass_executions (
    job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status, cpu_time_ms, result
)
select j.id, j.executions, j.attempt, j.token, j.worker, f.started_us, max(f.finished_us, f.started_us),
    max(0, (f.started_us - j.run_at) / 1000), 'completed', f.cpu_time_ms, json(f.result)
from f cross join windlass_jobs as j on {is_undecided};
with f (id, token, started_us, finished_us, cpu_time_ms, result) as (values {rows})
update windlass_jobs as j not indexed set
    state = 'completed', crashes = 0, consecutive_failures = 0, completed_runs = j.completed_runs + 1,
    token = null, worker = null, pull_id = null, lease_expires_at = null,
    started_at = f.started_us, finished_at = max(f.finished_us, f.started_us), closed_at = {now}, held = 0,
    unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
    last_error = null, last_error_at = null, done_reason = null, updated_at = {now}
from f where {is_undecided};
select changes()

-- name: completed_runs_row
(:id_{i}, :token_{i})

-- name: completed_runs
with f (id, token) as (values {rows})
select x.job_id from f cross join windlass_executions as x
on x.job_id = f.id and x.token = f.token and x.status = 'completed'

-- name: locked_jobs
-- No row is ever locked here.
select value from json_each(:ids) where false

-- name: reclaim
-- The same for leases that were not renewed.
{finish}

-- name: lapsed
-- Past their end, or of workers that are gone. Without the payload, which may be large and decides nothing.
select id, task, lane, '{}', {claimed_rest}, started_at, stop_requested, state = 'cancelled', {recorded_log}
from windlass_jobs as j where token is not null and ({worker_gone} or not :only_gone and lease_expires_at <= {now})
order by id limit :limit

-- name: stop
-- The one late report about a cancelled run: its worker has stopped, or its lease has ended. The first statement serves
-- a run that cancel took for not started; it had, between two heartbeats.
insert into windlass_executions (
    job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, log_excerpt, cpu_time_ms,
    memory_peak_mb, stopped_at
)
select j.id, j.executions + 1, j.attempt + 1, j.token, j.slot_at, j.worker, f.value ->> 'started_us',
    max(j.closed_at, f.value ->> 'started_us'), max(0, ((f.value ->> 'started_us') - j.run_at) / 1000), 'cancelled',
    'cancelled', f.value ->> 'log_excerpt', f.value ->> 'cpu_time_ms', f.value ->> 'memory_peak_mb', {now}
from json_each(:batch) as f cross join windlass_jobs j on j.id = f.value ->> 'id' and j.token = f.value ->> 'token'
where j.state = 'cancelled' and {is_over}
  and j.started_at is null and f.value ->> 'started_us' is not null;
update windlass_executions as x set
    log_excerpt = coalesce(s.log_excerpt, x.log_excerpt), cpu_time_ms = coalesce(s.cpu_time_ms, x.cpu_time_ms),
    memory_peak_mb = coalesce(s.memory_peak_mb, x.memory_peak_mb), stopped_at = {now}
from (
    select j.id, j.executions, j.token, f.value ->> 'log_excerpt' as log_excerpt, f.value ->> 'cpu_time_ms' as cpu_time_ms,
        f.value ->> 'memory_peak_mb' as memory_peak_mb
    from json_each(:batch) as f cross join windlass_jobs j on j.id = f.value ->> 'id' and j.token = f.value ->> 'token'
    where j.state = 'cancelled' and j.started_at is not null and {is_over}
) as s
where x.job_id = s.id and x.number = s.executions and x.token = s.token;
update windlass_jobs as j set
    token = null, worker = null, pull_id = null, lease_expires_at = null,
    executions = j.executions + (j.started_at is null and f.value ->> 'started_us' is not null),
    attempt = j.attempt + (j.started_at is null and f.value ->> 'started_us' is not null),
    started_at = coalesce(j.started_at, f.value ->> 'started_us'),
    finished_at = case when j.started_at is null and f.value ->> 'started_us' is not null
        then max(j.closed_at, f.value ->> 'started_us') else j.finished_at end,
    unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end, updated_at = {now}
from json_each(:batch) as f
where j.id = f.value ->> 'id' and j.token = f.value ->> 'token' and j.state = 'cancelled'
  and {is_over}
returning id

-- name: promote
update windlass_jobs set state = 'pending', updated_at = {now} where id in (
    select j.id from windlass_jobs as j indexed by windlass_jobs_scheduled
    where j.state = 'scheduled' and not j.spawn and j.run_at <= {now}
      and not ({missed} and j.run_at < {now} - :missed_after) order by j.run_at, j.id limit :limit
);
select changes(), min(
    coalesce(ordinary, template), coalesce(template, ordinary)
), coalesce((select min(run_at) from windlass_jobs where state = 'scheduled' and spawn) <= {now}, 0),
    coalesce((select min(j.run_at) from windlass_jobs j where {missed}) < {now} - :missed_after, 0), {has_pending},
    case when not ({has_leases}) then {now} end from (select
    (select min(run_at) from windlass_jobs where state = 'scheduled' and not spawn and run_at > {now}) as ordinary,
    (select min(run_at) from windlass_jobs where state = 'scheduled' and spawn and run_at > {now}) as template)

-- name: see_pull_workers
-- They never register; what only a process of ours knows of itself stays empty.
insert into windlass_workers as w (id, kind, host, pid, version, pools, tasks, started_at, seen_at)
select s.value ->> 'id', 'pull', s.value ->> 'host', 0, '', '{}', '[]', {now}, {now} from json_each(:batch) as s where true
on conflict (id) do update set host = excluded.host, seen_at = excluded.seen_at, stopped_at = null where w.kind = 'pull'
returning id

-- name: lose_workers
-- Named with the process that is gone: a worker that has come back under the same name is another one.
update windlass_workers as w set stopped_at = {now}, running = 0
from json_each(:batch) as s
where w.id = s.value ->> 'id' and w.pid = s.value ->> 'pid' and w.process_start = s.value ->> 'process_start'
  and w.place = :place and w.stopped_at is null
returning id

-- name: prune_workers
delete from windlass_workers where id in (
    select id from windlass_workers where seen_at < {now} - :gone_for order by seen_at limit :limit
);
select changes()

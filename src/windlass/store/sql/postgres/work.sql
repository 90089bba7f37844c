-- name: contact
-- Contact is being able to write jobs, not only to read: while no worker can renew, leases of running workers end. The empty update
-- waits for whatever keeps writers out, the other one fails where the disk is full, and the clock is read after both.
with touched as (
    update windlass_jobs j set updated_at = j.updated_at where false returning j.id
), written as (
    insert into windlass_contact (id, touched_at) values (1, {now})
    on conflict (id) do update set touched_at = excluded.touched_at returning id
)
select coalesce(:now::timestamptz, clock_timestamp()) from written

-- name: insert_jobs
-- A batch is groups of jobs that share their options and differ in their payload. Ids are drawn before the insert, so that
-- the body can carry the same one, and in the order of the request. Inserted in key order: two bulk enqueues that meet the
-- same keys in different order would wait for each other. A row whose key is taken is left out of the answer. `in (select …)`
-- is a hashed look-up; a join of the two would be quadratic.
with doc as materialized (
    select nextval('windlass_job_ids') as id, g.ord + p.place - 1 as ord, p.payload, g.task, g.lane, g.priority, g.max_attempts,
        g.retry, g.cadence, g.spawn, g.timeout_us, g.name, g.unique_key, g.unique_scope, g.child_key, g.subject,
        g.correlation_id, g.parent_id, g.target_count, g.item_key, g.collection, g.metadata, g.description, g.created_by,
        g.declared_by, g.traceparent, coalesce({epoch} + g.run_us * {us}, {now} + g.delay_us * {us}, {now}) as run_at,
        {epoch} + g.slot_us * {us} as slot_at
    from json_to_recordset(:jobs::json) as g (
        ord bigint, rows json, task text, lane text, priority integer, run_us bigint, delay_us bigint, slot_us bigint,
        max_attempts integer,
        retry text, cadence text, spawn boolean, timeout_us bigint, name text, unique_key text, unique_scope text,
        child_key text, subject text, correlation_id text, parent_id bigint, target_count bigint, item_key json,
        collection text, metadata json, description text, created_by text, declared_by text, traceparent text
    ) cross join lateral json_array_elements(g.rows) with ordinality as p (payload, place)
), inserted as (
    insert into windlass_jobs (
        id, task, lane, state, wait_reason, priority, base_priority, run_at, slot_at, max_attempts, retry, cadence, spawn,
        timeout_us, name, unique_key, unique_scope, unique_slot, child_key, subject, correlation_id, parent_id, target_count,
        traceparent, created_at, updated_at
    )
    select id, task, lane,
        case when coalesce(spawn, false) or run_at > {now} then 'scheduled' else 'pending' end,
        case when cadence is not null then 'recurrence' when run_at > {now} then 'delay' else 'new' end,
        coalesce(priority, 0), coalesce(priority, 0), run_at, case when cadence is not null then coalesce(slot_at, run_at) end,
        max_attempts,
        coalesce(retry, 'task'), cadence, coalesce(spawn, false), timeout_us, name, unique_key, unique_scope, unique_key,
        child_key, subject, correlation_id, parent_id, target_count, traceparent, {now}, {now}
    from doc order by name, case when name is null then task end, case when name is null then unique_key end, id
    on conflict do nothing
    returning id
), bodies as (
    insert into windlass_bodies (
        job_id, payload, metadata, description, item_key, collection, created_by, declared_by, declared_at
    )
    select id, payload, metadata, description, item_key, collection, created_by, declared_by,
        case when declared_by is not null then {now} end
    from doc where id in (select id from inserted)
)
select ord, id, {now} from doc where id in (select id from inserted)

-- name: insert_plain
-- What `insert_jobs` does to jobs that share all options but the payload and have no key. It may announce them itself, which
-- saves the caller a round trip.
with doc as materialized (
    select nextval('windlass_job_ids') as id, p.place - 1 as ord, p.payload
    from unnest(:payload::text[]) with ordinality as p (payload, place)
), inserted as (
    insert into windlass_jobs (
        id, task, lane, state, wait_reason, priority, base_priority, run_at, retry, created_at, updated_at
    )
    select id, :task, :lane, 'pending', 'new', :priority::integer, :priority::integer, {now}, :retry, {now}, {now} from doc
), bodies as (
    insert into windlass_bodies (job_id, payload) select id, payload::json from doc
)
select ord, id, {now} from doc
where case when ord = 0 and :is_announced::boolean then pg_notify('windlass', 'work') is not null else true end

-- name: find_holders
-- Who holds the keys that an insert left out. A separate statement: only a new snapshot sees a transaction that has just committed.
select s.ord, j.id, j.state
from json_to_recordset(:keys::json) as s (ord integer, task text, unique_key text, name text)
join windlass_jobs j on j.task = s.task and j.unique_slot = s.unique_key
union
select s.ord, j.id, j.state
from json_to_recordset(:keys::json) as s (ord integer, task text, unique_key text, name text)
join windlass_jobs j on j.name = s.name

-- name: replace_waiting
-- The holder takes over payload, priority and time while it waits; once it runs, what it runs with is settled.
with s as materialized (
    select * from json_to_recordset(:jobs::json) as s (id bigint, payload json, priority integer, run_us bigint, delay_us bigint)
), changed as (
    update windlass_jobs j set
        priority = coalesce(s.priority, 0), base_priority = coalesce(s.priority, 0),
        run_at = coalesce({epoch} + s.run_us * {us}, {now} + s.delay_us * {us}, {now}),
        slot_at = case when j.cadence is not null
            then coalesce({epoch} + s.run_us * {us}, {now} + s.delay_us * {us}, {now}) end,
        state = case when j.state = 'paused' then j.state
            when j.spawn or coalesce({epoch} + s.run_us * {us}, {now} + s.delay_us * {us}, {now}) > {now} then 'scheduled'
            else 'pending' end,
        wait_reason = case when j.cadence is not null then j.wait_reason
            when coalesce({epoch} + s.run_us * {us}, {now} + s.delay_us * {us}, {now}) > {now} then 'delay' else 'new' end,
        updated_at = {now}
    from s where j.id = s.id and j.state in ('scheduled', 'pending', 'paused')
    returning j.id
), bodies as (
    update windlass_bodies b set payload = s.payload from s where b.job_id = s.id and s.id in (select id from changed)
)
select id from changed

-- name: rerun_holders
{chosen}
update windlass_jobs j set rerun_at = least(j.rerun_at, {now}), updated_at = {now}
from c where j.id = c.id and j.state = 'running'
returning j.id

-- name: slices
-- A loose index scan: one look-up for each lane and task with pending work, however long the backlog behind it is.
-- A breaker that is due to be tried lets its slices through, marked; any other that is not closed holds them back.
{pending_heads}
select gates.version, open.lane, open.task, open.priority, open.run_at, open.breaker, coalesce(open.is_suspect, false)
from windlass_gates gates left join (
    select h.lane, h.task, h.priority, h.run_at, b.name as breaker, h.is_suspect from (
        select lane, task, priority, run_at, false as is_suspect from heads
        union all select lane, task, priority, run_at, true from suspects
    ) as h
    left join windlass_tasks t on t.name = h.task
    left join windlass_breakers b on b.name = t.breaker and b.state <> 'closed'
    where not exists (select 1 from windlass_lanes l where l.name in (h.lane, '*') and l.paused_at is not null)
      and t.paused_at is null and (b.name is null or {breaker_due})
) open on true
order by open.priority desc, open.run_at

-- name: claim_arm
-- From where the slice began when it was looked at: what has been claimed since the last vacuum leaves dead entries before it.
(select ctid as tid, ~priority as rank, run_at, id from windlass_jobs
 where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i}
   and (~priority, run_at) >= (~:priority_{i}::integer, :run_at_{i}::timestamptz) order by ~priority, run_at, id limit 1000)

-- name: claim_suspect_arm
(select ctid as tid, ~priority as rank, run_at, id from windlass_jobs
 where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i} order by ~priority, run_at, id limit 1000)

-- name: claim_any_arm
(select ctid as tid, ~priority as rank, run_at, id from windlass_jobs
 where state = 'pending' and crashes = 0 and lane = :lane_{i} and task = :task_{i} order by ~priority, run_at, id limit 1000)
union all
(select ctid as tid, ~priority as rank, run_at, id from windlass_jobs
 where state = 'pending' and crashes > 0 and lane = :lane_{i} and task = :task_{i} order by ~priority, run_at, id limit 1000)

-- name: renew
-- A cancelled run that had not started stays so: only its stopped report may record a start, and writes the execution.
-- Skips what another statement holds at this moment; the answer comes from the snapshot, so a skipped lease is not
-- called lost; its expiry is the old one until it is vouched for.
with s as materialized (
    select s.id, s.token, s.started_us, {unknown}
    from json_to_recordset(:leases::json) as s (id bigint, token bigint, started_us bigint) order by s.id
), renewed as (
    update windlass_jobs j set
        lease_expires_at = greatest(j.lease_expires_at, {now} + :lease::interval),
        started_at = case when j.state = 'running' then coalesce(j.started_at, {epoch} + l.started_us * {us})
            else j.started_at end
    from (
        select k.id, s.token, s.started_us from s cross join lateral (
            select w.id from windlass_jobs w where w.id = s.id and w.token = s.token for update skip locked
        ) as k where {few}
    ) as l
    where j.id = l.id and j.token = l.token
    returning j.id
)
select j.id, j.token, j.stop_requested or j.state = 'cancelled', j.state = 'cancelled',
    case when j.id in (select id from renewed) then greatest(j.lease_expires_at, {now} + :lease::interval)
        else j.lease_expires_at end, j.id not in (select id from renewed)
from s join windlass_jobs j on j.id = s.id and j.token = s.token where {few}

-- name: vouch
-- For leases whose rows another transaction has locked. A lease that is being reclaimed at this moment cannot be vouched for.
with s as materialized (
    select s.id, s.token, {unknown} from json_to_recordset(:leases::json) as s (id bigint, token bigint)
    cross join {patience} order by s.id
)
insert into windlass_vouchers as v (job_id, token, until)
select j.id, j.token, {now} + :lease::interval from s join windlass_jobs j on j.id = s.id and j.token = s.token where {few}
order by j.id
on conflict (job_id, token) do update set until = greatest(v.until, excluded.until) where not v.is_taken
returning v.job_id, v.token, v.until

-- name: progress
-- A handler waits for it: longer than a report, and not for ever.
update windlass_jobs j set
    progress_count = coalesce(:count::bigint, j.progress_count), last_cursor = coalesce(:cursor::text, j.last_cursor),
    progress_message = coalesce(:message::text, j.progress_message), last_progress_at = {now},
    started_at = coalesce(j.started_at, {now}), updated_at = {now}
from (select set_config('lock_timeout', '5000', true)) as patience
where j.id = :id and j.token = :token and j.state = 'running'
returning j.id

-- name: record_logs
with s as materialized (
    select s.id, s.token, s.log_excerpt, {unknown}
    from json_to_recordset(:logs::json) as s (id bigint, token bigint, log_excerpt text) cross join {patience}
)
insert into windlass_run_logs (job_id, token, log_excerpt)
select j.id, j.token, s.log_excerpt from s join windlass_jobs j on j.id = s.id and j.token = s.token
where {few} and j.state = 'running' order by j.id
on conflict (job_id, token) do update set log_excerpt = excluded.log_excerpt
returning job_id

-- name: finish
-- A batch is groups of endings that are alike but for their job, times and result.
-- Fenced and locked in id order, so that two batches cannot deadlock; matched by id and not by ctid, because a renewal that
-- commits meanwhile would make the row vanish from this statement. The document's columns are carried along: joining two
-- CTEs of one batch is quadratic.
with s as materialized (
    {finish_doc}
), f as materialized (
    {finish_columns}
    from s cross join lateral (
        {finish_locked}
        for update
    ) as j where {few}
{finish_rest}

-- name: complete
-- What `finish` does to a run that came back with nothing to decide. Whatever makes more of it is left to `finish`: a rule, a
-- rerun, a lease that is gone. `is not distinct from` and not `=`: the planner would go by the index of leases, which it takes
-- for empty.
with s as materialized (
    select r.*, {unknown} from unnest(
        :id::bigint[], :token::bigint[], :started_us::bigint[], :finished_us::bigint[], :cpu_time_ms::bigint[], :result::text[]
    ) as r (id, token, started_us, finished_us, cpu_time_ms, result) cross join {patience} order by r.id
), ended as (
    update windlass_jobs j set
        state = 'completed', crashes = 0, consecutive_failures = 0, completed_runs = j.completed_runs + 1,
        token = null, worker = null, pull_id = null, lease_expires_at = null,
        started_at = {epoch} + s.started_us * {us}, finished_at = {epoch} + greatest(s.finished_us, s.started_us) * {us},
        closed_at = {now}, held = false, unique_slot = case when j.unique_scope = 'forever' then j.unique_slot end,
        last_error = null, last_error_at = null, done_reason = null, updated_at = {now}
    from s where {few} and j.id = s.id and j.token is not distinct from s.token and j.worker = :worker and j.state = 'running'
      and j.rerun_at is null and j.cadence is null
    returning j.id, j.executions, j.attempt, s.token, j.run_at, j.started_at, j.finished_at, s.cpu_time_ms, s.result
), history as (
    insert into windlass_executions (
        job_id, number, attempt, token, worker, started_at, finished_at, wait_ms, status, cpu_time_ms, result
    )
    select id, executions, attempt, token, :worker, started_at, finished_at,
        greatest(0, (date_part('epoch', started_at - run_at) * 1000000)::bigint / 1000), 'completed', cpu_time_ms, result::json
    from ended
)
select count(*) from ended

-- name: completed_runs
with s as materialized (select r.*, {unknown} from unnest(:id::bigint[], :token::bigint[]) as r (id, token))
select x.job_id from s join windlass_executions x on x.job_id = s.id and x.token = s.token and x.status = 'completed' where {few}

-- name: locked_jobs
-- Which of these another transaction has locked at this moment.
with s as materialized (
    select value::bigint as id, {unknown} from json_array_elements_text(:ids::json) order by 1
), free as materialized (
    select k.id from s cross join lateral (
        select w.id from windlass_jobs w where w.id = s.id for update skip locked
    ) as k where {few}
)
select j.id from s join windlass_jobs j on j.id = s.id where {few} and j.id not in (select id from free)

-- name: reclaim
-- The same for leases that were not renewed. It skips locked rows: another transaction is changing them.
-- A lease that was vouched for meanwhile is left alone; the key of a voucher decides who was first.
with s as materialized (
    {finish_doc}
), locked as materialized (
    {finish_columns}
    from s cross join lateral (
        {finish_locked}
        for update skip locked
    ) as j where {few}
), guarded as (
    insert into windlass_vouchers as v (job_id, token, until, is_taken)
    select j.id, j.token,
        case when :expired_before::timestamptz is null or {worker_gone} then timestamptz 'infinity' else {now} end, true
    from locked j order by j.id
    on conflict (job_id, token) do update set until = {now}, is_taken = true where v.until <= excluded.until
    returning v.job_id
), f as materialized (
    select l.* from locked l where l.id in (select job_id from guarded)
{finish_rest}

-- name: lapsed
-- Past their end, or of workers that are gone. Without the payload, which may be large and decides nothing.
select j.id, j.task, j.lane, '{}', {claimed_rest}, j.started_at, j.stop_requested, j.state = 'cancelled', {recorded_log}
from windlass_jobs j where j.token is not null and ({worker_gone} or not :only_gone::boolean and j.lease_expires_at <= {now}
    and not exists (
        select 1 from windlass_vouchers v where v.job_id = j.id and v.token = j.token and v.until > {now} and not v.is_taken
    ))
order by j.id limit :limit

-- name: stop
-- The one late report about a cancelled run: its worker has stopped, or its lease has ended.
with f as materialized (
    select s.*, j.executions, j.attempt, j.worker, j.slot_at, j.run_at, j.started_at, j.closed_at, j.unique_scope,
        {epoch} + s.started_us * {us} as reported_at
    from json_to_recordset(:batch::json) as s (
        id bigint, token bigint, started_us bigint, log_excerpt text, cpu_time_ms bigint, memory_peak_mb integer
    ) cross join {patience} join windlass_jobs j on j.id = s.id
    where j.token = s.token and j.state = 'cancelled'
      and {is_over}
    order by j.id for update of j
), stopped as (
    update windlass_jobs j set
        token = null, worker = null, pull_id = null, lease_expires_at = null,
        executions = case when f.started_at is null and f.reported_at is not null then f.executions + 1 else j.executions end,
        attempt = case when f.started_at is null and f.reported_at is not null then f.attempt + 1 else j.attempt end,
        started_at = coalesce(f.started_at, f.reported_at),
        finished_at = case when f.started_at is null and f.reported_at is not null then greatest(f.closed_at, f.reported_at)
            else j.finished_at end,
        unique_slot = case when f.unique_scope = 'forever' then j.unique_slot end, updated_at = {now}
    from f where j.id = f.id
    returning j.id
), added as (
    -- Cancel took it for a job that had not started; it had, between two heartbeats.
    insert into windlass_executions (
        job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, log_excerpt,
        cpu_time_ms, memory_peak_mb, stopped_at
    )
    select id, executions + 1, attempt + 1, token, slot_at, worker, reported_at, greatest(closed_at, reported_at),
        greatest(0, floor(extract(epoch from reported_at - run_at) * 1000))::bigint, 'cancelled', 'cancelled', log_excerpt,
        cpu_time_ms, memory_peak_mb, {now}
    from f where started_at is null and reported_at is not null
), told as (
    update windlass_executions x set
        log_excerpt = coalesce(f.log_excerpt, x.log_excerpt), cpu_time_ms = coalesce(f.cpu_time_ms, x.cpu_time_ms),
        memory_peak_mb = coalesce(f.memory_peak_mb, x.memory_peak_mb), stopped_at = {now}
    from f where f.started_at is not null and x.job_id = f.id and x.number = f.executions and x.token = f.token
)
select id from stopped

-- name: promote
-- By ctid: a row that moved meanwhile waits for the next round.
with promoted as (
    update windlass_jobs j set state = 'pending', updated_at = {now}
    where j.ctid = any(array(
        select j.ctid from windlass_jobs j where j.state = 'scheduled' and not j.spawn and j.run_at <= {now}
          and not ({missed} and j.run_at < {now} - :missed_after::interval)
        order by j.run_at, j.id limit :limit for update skip locked
    ))
    returning j.id
)
select (select count(*) from promoted), least(
    (select min(run_at) from windlass_jobs where state = 'scheduled' and not spawn and run_at > {now}),
    (select min(run_at) from windlass_jobs where state = 'scheduled' and spawn and run_at > {now})
), coalesce((select min(run_at) from windlass_jobs where state = 'scheduled' and spawn) <= {now}, false),
    coalesce((select min(j.run_at) from windlass_jobs j where {missed}) < {now} - :missed_after::interval, false),
    exists (select 1 from promoted) or {has_pending}, case when not ({has_leases}) then {now} end

-- name: see_pull_workers
-- They never register; what only a process of ours knows of itself stays empty.
insert into windlass_workers as w (id, kind, host, pid, version, pools, tasks, started_at, seen_at)
select s.id, 'pull', s.host, 0, '', '{}', '[]', {now}, {now}
from json_to_recordset(:batch::json) as s (id text, host text) order by s.id
on conflict (id) do update set host = excluded.host, seen_at = excluded.seen_at, stopped_at = null where w.kind = 'pull'
returning w.id

-- name: lose_workers
-- Named with the process that is gone: a worker that has come back under the same name is another one.
update windlass_workers w set stopped_at = {now}, running = 0
from json_to_recordset(:batch::json) as s (id text, pid integer, process_start bigint)
where w.id = s.id and w.pid = s.pid and w.process_start = s.process_start and w.place = :place::text and w.stopped_at is null
returning w.id

-- name: prune_workers
with gone as (
    delete from windlass_workers where id = any(array(
        select id from windlass_workers where seen_at < {now} - :gone_for::interval
        order by seen_at limit :limit for update skip locked
    )) returning id
), vouchers as (
    -- Kept for a while: a renewal under way may still ask for what was taken back.
    delete from windlass_vouchers where until < {now} - interval '1 hour'
)
select count(*) from gone

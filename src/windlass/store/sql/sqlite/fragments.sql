-- name: now
:now

-- name: claimed_columns
id, task, lane, (select b.payload from windlass_bodies b where b.job_id = windlass_jobs.id), {claimed_rest}

-- name: claimed_rest
priority, run_at, slot_at,
    attempt, max_attempts, executions, crashes, consecutive_failures, completed_runs, retry, cadence, timeout_us, token, worker,
    claimed_at, lease_expires_at, subject, correlation_id, parent_id, last_cursor, progress_count, result_count, target_count,
    traceparent

-- name: original_job
json_object({original_fields}, 'payload', json(b.payload), 'metadata', json(b.metadata), 'item_key', json(b.item_key),
    'spawn', json(iif(j.spawn, 'true', 'false')),
    'run_at', strftime('%Y-%m-%dT%H:%M:%S', j.run_at / 1000000, 'unixepoch') || printf('.%06dZ', j.run_at % 1000000),
    'slot_at', strftime('%Y-%m-%dT%H:%M:%S', j.slot_at / 1000000, 'unixepoch') || printf('.%06dZ', j.slot_at % 1000000),
    'created_at', strftime('%Y-%m-%dT%H:%M:%S', j.created_at / 1000000, 'unixepoch') || printf('.%06dZ', j.created_at % 1000000))

-- name: pending_heads
-- Each walk repeats the condition of its index exactly, so that it is used.
with recursive heads (lane, task) as (
    select * from (
        select n.lane, n.task from windlass_jobs n indexed by windlass_jobs_pending where n.state = 'pending' and n.crashes = 0
        order by n.lane, n.task limit 1
    )
    union all
    select coalesce(
            (select n.lane from windlass_jobs n indexed by windlass_jobs_pending where n.state = 'pending' and n.crashes = 0
             and n.lane = heads.lane and n.task > heads.task limit 1),
            (select min(n.lane) from windlass_jobs n indexed by windlass_jobs_pending where n.state = 'pending' and n.crashes = 0
             and n.lane > heads.lane)
        ),
        coalesce(
            (select min(n.task) from windlass_jobs n indexed by windlass_jobs_pending where n.state = 'pending' and n.crashes = 0
             and n.lane = heads.lane and n.task > heads.task),
            (select n.task from windlass_jobs n indexed by windlass_jobs_pending where n.state = 'pending' and n.crashes = 0
             and n.lane > heads.lane order by n.lane, n.task limit 1)
        )
    from heads where heads.lane is not null
), suspects (lane, task) as (
    select * from (
        select n.lane, n.task from windlass_jobs n indexed by windlass_jobs_suspects where n.state = 'pending' and n.crashes > 0
        order by n.lane, n.task limit 1
    )
    union all
    select coalesce(
            (select n.lane from windlass_jobs n indexed by windlass_jobs_suspects where n.state = 'pending' and n.crashes > 0
             and n.lane = suspects.lane and n.task > suspects.task limit 1),
            (select min(n.lane) from windlass_jobs n indexed by windlass_jobs_suspects where n.state = 'pending' and n.crashes > 0
             and n.lane > suspects.lane)
        ),
        coalesce(
            (select min(n.task) from windlass_jobs n indexed by windlass_jobs_suspects where n.state = 'pending' and n.crashes > 0
             and n.lane = suspects.lane and n.task > suspects.task),
            (select n.task from windlass_jobs n indexed by windlass_jobs_suspects where n.state = 'pending' and n.crashes > 0
             and n.lane > suspects.lane order by n.lane, n.task limit 1)
        )
    from suspects where suspects.lane is not null
)

-- name: take
-- SQLite merges the arms lazily by itself, as long as what they are ordered by is selected.
-- The jobs are read as the update leaves them, so that they need not be read again; they come as one value, for the reason that
-- `_packed` has.
select json_group_array(j.id) as ids_found, json_group_array(json_array(
    j.id, j.task, j.lane, b.payload, j.priority, j.run_at, j.attempt + 1, j.executions + 1, j.crashes, j.consecutive_failures,
    j.completed_runs, {now}, {claim_rest}
)) as rows_found
from (
    select priority, run_at, id from ({arms}) where (select version from windlass_gates) = :version
    order by priority desc, run_at, id limit :limit
) as p cross join windlass_jobs j on j.id = p.id cross join windlass_bodies b on b.job_id = p.id;
update windlass_jobs set {taken} where id in (select value from json_each(:ids_found))

-- name: claim_rest
-- What most jobs have nothing of.
case when {is_bare} then null else json_array(
    j.slot_at, j.max_attempts, j.retry, j.cadence, j.timeout_us, j.subject, j.correlation_id, j.parent_id, j.last_cursor,
    j.progress_count, j.result_count, j.target_count, j.traceparent
) end

-- name: groups
with f as materialized (
    select value -> 'rows' as rows, value ->> 'state' as state, value ->> 'status' as status, value ->> 'reason' as reason,
        value ->> 'wait_reason' as wait_reason,
        coalesce(value ->> 'run_us', {now} + (value ->> 'delay_us')) as run_at, value ->> 'slot_us' as slot_at,
        value ->> 'attempt' as attempt, value ->> 'executions' as executions, value ->> 'crashes' as crashes,
        value ->> 'consecutive_failures' as consecutive_failures, value ->> 'completed_runs' as completed_runs,
        value ->> 'error' as error, value ->> 'error_type' as error_type, value ->> 'stack_trace' as stack_trace,
        value ->> 'log_excerpt' as log_excerpt, value ->> 'cpu_time_ms' as cpu_time_ms,
        value ->> 'memory_peak_mb' as memory_peak_mb, value ->> 'items_crawled' as items_crawled,
        value ->> 'items_indexed' as items_indexed, value -> 'metadata' as metadata, value ->> 'fingerprint' as fingerprint,
        value ->> 'done_reason' as done_reason
    from json_each(:batch)
)

-- name: guarded
f cross join json_each(f.rows) as r cross join windlass_jobs as j
    on j.id = r.value ->> 'id' and j.token = r.value ->> 'token' and j.state = 'running' and {is_over}

-- name: started
coalesce(r.value ->> 'started_us', j.started_at, j.claimed_at)

-- name: decided
-- A job whose key was free to others while it ran may find it taken; the first of its batch to come back gets it.
(
    select w.*, case
        when w.gives_key and w.wanted in ('scheduled', 'paused') and (
            exists (select 1 from windlass_jobs o where o.task = w.task and o.unique_slot = w.unique_key)
            or row_number() over (
                partition by w.task, w.unique_key, w.gives_key and w.wanted in ('scheduled', 'paused') order by w.id
            ) > 1
        ) then 'superseded' else w.wanted
    end as final
    from (
        select j.id, j.task, j.unique_key, j.unique_scope is 'pending' and j.unique_slot is null as gives_key,
            f.state, f.status, f.reason, f.wait_reason, f.run_at, f.slot_at, f.attempt, f.executions, f.crashes,
            f.consecutive_failures, f.completed_runs, f.error, f.error_type, f.stack_trace, f.fingerprint, f.done_reason,
            {started} as started_at, coalesce(r.value ->> 'finished_us', {now}) as ended_at,
            case
                when f.state in ('failed', 'cancelled') then f.state
                when j.held and (f.state = 'scheduled' or j.rerun_at is not null) then 'paused'
                when j.rerun_at is not null then 'scheduled'
                else f.state
            end as wanted
        from {guarded}
    ) as w
)

-- name: retriable
select c.id from (
    select j.id, j.task, j.unique_key, row_number() over (
        partition by j.task, j.unique_key order by j.unique_slot is null, j.id
    ) as place
    from windlass_jobs j
    where j.id in (select value from json_each(:ids)) and {may_retry}
) as c
where c.unique_key is null or c.place = 1 and not exists (
    select 1 from windlass_jobs o where o.task = c.task and o.unique_slot = c.unique_key and o.id <> c.id
)

-- name: is_undecided
j.id = f.id and j.token = f.token and j.worker = :worker and j.state = 'running' and j.rerun_at is null and j.cadence is null

-- name: finish
{groups}
insert into windlass_executions (
    job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, error, error_type,
    stack_trace, log_excerpt, cpu_time_ms, memory_peak_mb, items_crawled, items_indexed, metadata, result
)
select j.id, j.executions, j.attempt, j.token, j.slot_at, j.worker, {started},
    max(coalesce(r.value ->> 'finished_us', {now}), {started}), max(0, ({started} - j.run_at) / 1000),
    f.status, f.reason, f.error, f.error_type, f.stack_trace, f.log_excerpt, f.cpu_time_ms, f.memory_peak_mb, f.items_crawled,
    f.items_indexed, f.metadata, r.value -> 'result'
from {guarded} where f.status is not null;
{groups}
insert into windlass_dead_letters (
    job_id, task, lane, original_job, error, details, fingerprint, first_died_at, died_at, version
)
select j.id, j.task, j.lane, {original_job}, coalesce(g.error, 'no message'),
    json_object('type', g.error_type, 'reason', g.reason, 'stack_trace', g.stack_trace,
        'attempt', j.attempt, 'execution', j.executions, 'worker', j.worker),
    g.fingerprint, {now}, {now}, (select w.app_version from windlass_workers w where w.id = j.worker)
from {decided} as g cross join windlass_jobs j on j.id = g.id join windlass_bodies b on b.job_id = g.id
where :any_death and g.fingerprint is not null and g.final <> 'superseded'
on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
    original_job = excluded.original_job, error = excluded.error, details = excluded.details,
    fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = deaths + 1,
    -- That of the first death of its kind.
    version = case when fingerprint = excluded.fingerprint then version else excluded.version end;
{groups}
update windlass_dead_letters set closed_at = {now}, closed_reason = 'succeeded'
where :any_recurring and closed_at is null and job_id in (
    select j.id from {guarded} where f.status = 'completed' and j.cadence is not null
);
{groups}
select json_group_array(j.id) as ids_found from {guarded};
{groups}
update windlass_jobs as j set
    state = case g.final when 'superseded' then 'cancelled' else g.final end,
    wait_reason = case when g.final in ('scheduled', 'paused') then
        case when j.rerun_at is null then g.wait_reason when j.rerun_slot_at is null then 'operator' else 'recurrence' end
    end,
    priority = case when g.final in ('scheduled', 'paused') then j.base_priority else j.priority end,
    run_at = case when g.final in ('scheduled', 'paused') then coalesce(j.rerun_at, g.run_at, j.run_at) else j.run_at end,
    slot_at = case when g.final in ('scheduled', 'paused') then coalesce(j.rerun_slot_at, g.slot_at, j.slot_at) else j.slot_at end,
    attempt = case when g.state = 'completed' and g.final in ('scheduled', 'paused') then 0 else g.attempt end,
    executions = g.executions, crashes = g.crashes, consecutive_failures = g.consecutive_failures,
    completed_runs = g.completed_runs, token = null, worker = null, pull_id = null, lease_expires_at = null,
    started_at = case when g.status is not null then g.started_at end,
    finished_at = case when g.status is not null then max(g.ended_at, g.started_at) else j.finished_at end,
    closed_at = case when g.final not in ('scheduled', 'paused') then {now} end,
    paused_at = case when g.final = 'paused' then {now} end,
    held = 0, stop_requested = 0, rerun_at = null, rerun_slot_at = null,
    unique_slot = case
        when g.final in ('scheduled', 'paused') then j.unique_key
        when j.unique_scope = 'forever' then j.unique_slot
    end,
    last_error = case when g.error is not null then g.error when g.status = 'completed' then null else j.last_error end,
    last_error_at = case when g.error is not null then {now} when g.status = 'completed' then null else j.last_error_at end,
    last_cursor = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then null else j.last_cursor end,
    progress_message = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then null
        else j.progress_message end,
    progress_count = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then 0 else j.progress_count end,
    result_count = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then 0 else j.result_count end,
    done_reason = case when g.final = 'superseded' then 'superseded'
        when g.final not in ('scheduled', 'paused') then g.done_reason end,
    updated_at = {now}
from {decided} as g
where j.id = g.id;
select id, state from windlass_jobs where id in (select value from json_each(:ids_found))

-- name: taken
state = 'running', wait_reason = null, attempt = attempt + 1, executions = executions + 1,
    token = :token, worker = :worker, claimed_at = {now}, lease_expires_at = {now} + :lease,
    started_at = case when :started then {now} end,
    unique_slot = case when unique_scope = 'pending' then null else unique_slot end, updated_at = {now}

-- name: probe_alive
case when b.probe_job_id is null then coalesce(b.half_opened_at + b.open_us > {now}, 0)
    else coalesce((select p.token from windlass_jobs p where p.id = b.probe_job_id) = b.probe_token, 0) end

-- name: overridable
-- Of several jobs with one key only the first may take it, and none while another job holds it.
select c.id from (
    select id, task, unique_key,
        unique_key is not null and (:state = 'pending' or :state = 'running' and unique_scope <> 'pending') as takes_key,
        row_number() over (
            partition by task, unique_key, :state = 'running' and unique_scope = 'pending' order by unique_slot is null, id
        ) as place
    from windlass_jobs
    where id in (select value from json_each(:ids)) and not (spawn and :state in ('pending', 'running'))
) as c
where not c.takes_key or c.place = 1 and not exists (
    select 1 from windlass_jobs o where o.task = c.task and o.unique_slot = c.unique_key and o.id <> c.id
)

-- name: deletable
select id from windlass_jobs where id in (select value from json_each(:ids)) and token is null

-- name: aged
-- For a job that has waited longer than aging waits; the same as `aged` in core.
min({aging_top}, j.base_priority + {aging_gain} * (1 + ({now} - j.run_at - {aging_patience_us}) / {aging_step_us}))

-- name: listed
j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.run_at, j.updated_at, j.closed_at, j.created_at, j.subject,
    j.correlation_id, j.parent_id, j.name, j.unique_key, j.last_error, j.spawn, j.cadence, j.token, j.worker

-- name: list_sliced
(:states is null or instr(:states, ' ' || j.state || '/' || coalesce(j.wait_reason, '') || ' '))
    and (:tasks is null or j.task in (select value from json_each(:tasks)))
    and (:lanes is null or j.lane in (select value from json_each(:lanes)))

-- name: list_head
-- As a condition: SQLite would work out every part of a truth value, also the look into the body.
with candidates as materialized (
    select j.id, case when
        {job_matches}
        then 1 else 0 end as is_match,
        case :sort
            when 'created_at' then :sign * j.id
            when 'updated_at' then :sign * j.updated_at
            when 'run_at' then :sign * j.run_at
            when 'priority' then :sign * j.priority
            when 'completed_at' then coalesce(:sign * j.closed_at, 9223372036854775807)
            else :sign * {state_rank}
        end as first_key,
        case :sort when 'created_at' then 0 when 'priority' then -:sign * j.run_at else :sign * j.id end as second_key,
        case :sort when 'priority' then -:sign * j.id else 0 end as third_key
    from (

-- name: list_tail
    ) as j limit :depth
), page as materialized (
    select c.id, c.first_key, c.second_key, c.third_key from candidates c
    where c.is_match and (c.first_key, c.second_key, c.third_key) > (:first_key, :second_key, :third_key)
    order by c.first_key, c.second_key, c.third_key limit :limit offset :offset
), head as materialized (
    select count(*) as looked, count(*) filter (where is_match) as matched, coalesce(min(id), 0) as lowest,
        coalesce(max(id), 0) as highest
    from candidates
)
select h.looked, h.matched, h.lowest, h.highest, p.first_key, p.second_key, p.third_key, {job_columns}
from head h left join page p on true left join windlass_jobs j on j.id = p.id left join windlass_bodies b on b.job_id = p.id
order by p.first_key, p.second_key, p.third_key

-- name: run_columns
x.job_id, x.number, x.attempt, x.token, x.slot_at, x.worker, x.started_at, x.finished_at, x.wait_ms, x.status, x.reason, x.error,
    x.error_type, x.stack_trace, x.log_excerpt, x.cpu_time_ms, x.memory_peak_mb, x.items_crawled, x.items_indexed, x.metadata,
    x.result, x.stopped_at,
    (select w.app_version from windlass_workers w where w.id = x.worker) as app_version

-- name: running_run
-- The run that goes on has no row of its own yet: its number and its times are on the job.
select j.id as job_id, j.executions as number, j.attempt, j.token, j.slot_at, j.worker, j.started_at, null,
        max(0, (j.started_at - j.run_at) / 1000) as wait_ms, 'running', null, null, null, null,
        {recorded_log}, null, null, null, null, null, null, null, (select w.app_version from windlass_workers w where w.id = j.worker)
    from windlass_jobs j where j.id = :job_id and j.state = 'running' and j.started_at is not null

-- name: taken_runs
(
    select minute, task, lane, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms from windlass_run_deltas
    order by minute, task, lane, status, reason, wait_bucket, run_bucket limit :limit
)

-- name: ended_runs
select task, 'wait' as kind, wait_bucket as bucket, sum(runs) as runs, sum(runs) as ended,
    sum(wait_ms) as wait_ms, sum(duration_ms) as duration_ms
from {taken_runs} as taken where reason not in ('released', 'snoozed') group by task, wait_bucket
union all
select task, 'run', run_bucket, sum(runs), 0, 0, 0
from {taken_runs} as taken where reason not in ('released', 'snoozed') group by task, run_bucket

-- name: letters_head
with candidates as materialized (
    select d.id, d.died_at, case when (:task is null or d.task = :task)
        and (:fingerprint is null or d.fingerprint = :fingerprint)
        and (:since is null or d.died_at >= :since)
        and (:status is null or :status = case
            when d.closed_at is not null then 'closed' when d.acknowledged_at is not null then 'acknowledged' else 'open' end)
        then 1 else 0 end as is_match
    from (

-- name: missed
-- What a rule about missed slots may want moved: written exactly as in the index, so that it is used.
case when j.wait_reason = 'recurrence' and not j.spawn then
        case j.state when 'scheduled' then instr(j.cadence, '"misfire":"') > 0
            when 'pending' then instr(j.cadence, '"misfire":"skip"') > 0 else 0 end
    else 0 end

-- name: asked_words
-- Each word in quotes, so that nothing in it is taken for an operator.
(select group_concat('"' || rtrim(w.value, '*') || '"' || iif(w.value like '%*', '*', ''), ' ') from json_each(:words) as w)

-- name: chosen

-- name: where_chosen
where j.id in (select value from json_each(:ids))

-- name: least
-- Of numbers that are not null.
min

-- name: greatest
max

-- name: run_ms
-- How long an execution `x` took.
(x.finished_at - x.started_at) / 1000

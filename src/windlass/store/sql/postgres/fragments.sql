-- name: now
coalesce(:now::timestamptz, statement_timestamp())

-- name: claimed_columns
j.id, j.task, j.lane, (select b.payload::text from windlass_bodies b where b.job_id = j.id), {claimed_rest}

-- name: claimed_rest
j.priority, j.run_at, j.slot_at,
    j.attempt, j.max_attempts, j.executions, j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence,
    j.timeout_us, j.token, j.worker, j.claimed_at, j.lease_expires_at, j.subject, j.correlation_id, j.parent_id, j.last_cursor,
    j.progress_count, j.result_count, j.target_count, j.traceparent

-- name: chosen
with c as materialized (
    select j.id from windlass_jobs j where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
    order by j.id for update
)

-- name: where_chosen
from c where j.id = c.id

-- name: least
least

-- name: greatest
greatest

-- name: original_job
json_build_object({original_fields}, 'payload', b.payload, 'metadata', b.metadata, 'item_key', b.item_key, 'spawn', j.spawn,
    'run_at', to_char(j.run_at at time zone 'UTC', {iso}), 'slot_at', to_char(j.slot_at at time zone 'UTC', {iso}),
    'created_at', to_char(j.created_at at time zone 'UTC', {iso}))

-- name: iso
'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'

-- name: epoch
timestamptz 'epoch'

-- name: us
interval '1 microsecond'

-- name: unknown
1 as one, 1 as another

-- name: few
-- Always true. The planner knows nothing of these columns and takes an equality for one row in two hundred, so it expects a
-- single row and reads jobs by index. Otherwise it may plan for a small table, hashing all of it, and a prepared statement
-- keeps that plan while the table grows.
s.one = 1 and s.another = 1

-- name: finish_doc
-- Flattened and sorted before the lock: FOR UPDATE carries a copy of what it reads beside the row, and the groups hold the
-- whole document. The limit is what no batch exceeds.
select r.id, r.token, r.result, r.started_us, r.finished_us, s.state, s.status, s.reason, s.wait_reason, s.run_us, s.delay_us,
        s.slot_us, s.attempt, s.executions, s.crashes, s.consecutive_failures, s.completed_runs, s.error, s.error_type,
        s.stack_trace, s.log_excerpt, s.cpu_time_ms, s.memory_peak_mb, s.items_crawled, s.items_indexed, s.metadata,
        s.fingerprint, s.done_reason, {unknown}
    from json_to_recordset(:batch::json) as s (
        rows json, state text, wait_reason text, run_us bigint, delay_us bigint, slot_us bigint, attempt integer,
        executions integer, crashes integer, consecutive_failures integer, completed_runs integer, status text, reason text,
        error text, error_type text, stack_trace text, log_excerpt text, cpu_time_ms bigint, memory_peak_mb integer,
        items_crawled bigint, items_indexed bigint, metadata json, fingerprint text, done_reason text
    )
    cross join lateral json_to_recordset(s.rows) as r (
        id bigint, token bigint, started_us bigint, finished_us bigint, result json
    )
    cross join {patience}
    order by r.id limit 500

-- name: patience
-- How long a report waits for a row, or a key, that another transaction holds. Set inside the statement and gone with its
-- transaction: behind a transaction pooler there is no session to set it in.
(select set_config('lock_timeout', '250', true)) as patience

-- name: finish_columns
-- The lock in a lateral: one index look-up for each row of the batch, in its order, whatever the planner thinks of the table.
select s.*, j.task, j.lane, j.cadence, j.worker, j.run_at as due_at, j.slot_at as job_slot_at, j.attempt as job_attempt,
        j.executions as job_executions, j.held, j.rerun_at, j.rerun_slot_at, j.unique_key, j.unique_scope, j.unique_slot,
        coalesce({epoch} + s.started_us * {us}, j.started_at, j.claimed_at) as started_at,
        {epoch} + s.finished_us * {us} as ended_at,
        coalesce(j.rerun_at, {epoch} + s.run_us * {us}, {now} + s.delay_us * {us}, j.run_at) as next_at,
        case
            when s.state in ('failed', 'cancelled') then s.state
            when j.held and (s.state = 'scheduled' or j.rerun_at is not null) then 'paused'
            when j.rerun_at is not null then 'scheduled'
            else s.state
        end as wanted

-- name: finish_locked
select j.task, j.lane, j.cadence, j.worker, j.run_at, j.slot_at, j.attempt, j.executions, j.held, j.rerun_at,
            j.rerun_slot_at, j.unique_key, j.unique_scope, j.unique_slot, j.started_at, j.claimed_at
        from windlass_jobs j
        where j.id = s.id and j.token = s.token and j.state = 'running' and {is_over}

-- name: finish_rest
), g as materialized (
    -- A job whose key was free to others while it ran may find it taken; the first of its batch to come back gets it.
    select f.*, case
        when f.unique_scope = 'pending' and f.unique_slot is null and f.wanted in ('scheduled', 'paused') and (
            row_number() over (
                partition by f.task, f.unique_key, f.unique_scope = 'pending' and f.wanted in ('scheduled', 'paused')
                order by f.id
            ) > 1
            or exists (select 1 from windlass_jobs o where o.task = f.task and o.unique_slot = f.unique_key)
        ) then 'superseded' else f.wanted
    end as final
    from f
), finished as (
    update windlass_jobs j set
        state = case g.final when 'superseded' then 'cancelled' else g.final end,
        wait_reason = case when g.final in ('scheduled', 'paused') then
            case when g.rerun_at is null then g.wait_reason when g.rerun_slot_at is null then 'operator' else 'recurrence' end
        end,
        priority = case when g.final in ('scheduled', 'paused') then j.base_priority else j.priority end,
        run_at = case when g.final in ('scheduled', 'paused') then g.next_at else j.run_at end,
        slot_at = case when g.final in ('scheduled', 'paused')
            then coalesce(g.rerun_slot_at, {epoch} + g.slot_us * {us}, j.slot_at) else j.slot_at end,
        attempt = case when g.state = 'completed' and g.final in ('scheduled', 'paused') then 0 else g.attempt end,
        executions = g.executions, crashes = g.crashes, consecutive_failures = g.consecutive_failures,
        completed_runs = g.completed_runs, token = null, worker = null, pull_id = null, lease_expires_at = null,
        started_at = case when g.status is not null then g.started_at end,
        finished_at = case when g.status is not null then greatest(coalesce(g.ended_at, {now}), g.started_at)
            else j.finished_at end,
        closed_at = case when g.final not in ('scheduled', 'paused') then {now} end,
        paused_at = case when g.final = 'paused' then {now} end,
        held = false, stop_requested = false, rerun_at = null, rerun_slot_at = null,
        unique_slot = case
            when g.final in ('scheduled', 'paused') then j.unique_key
            when j.unique_scope = 'forever' then j.unique_slot
        end,
        last_error = case when g.error is not null then g.error when g.status = 'completed' then null else j.last_error end,
        last_error_at = case when g.error is not null then {now} when g.status = 'completed' then null
            else j.last_error_at end,
        last_cursor = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then null else j.last_cursor end,
        progress_message = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then null
            else j.progress_message end,
        progress_count = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then 0
            else j.progress_count end,
        result_count = case when g.status = 'completed' and g.final in ('scheduled', 'paused') then 0 else j.result_count end,
        done_reason = case when g.final = 'superseded' then 'superseded'
            when g.final not in ('scheduled', 'paused') then g.done_reason end,
        updated_at = {now}
    from g where j.id = g.id
    returning j.id, j.state
), history as (
    insert into windlass_executions (
        job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, error, error_type,
        stack_trace, log_excerpt, cpu_time_ms, memory_peak_mb, items_crawled, items_indexed, metadata, result
    )
    select id, job_executions, job_attempt, token, job_slot_at, worker, started_at,
        greatest(coalesce(ended_at, {now}), started_at),
        greatest(0, floor(extract(epoch from started_at - due_at) * 1000))::bigint, status, reason, error, error_type,
        stack_trace, log_excerpt, cpu_time_ms, memory_peak_mb, items_crawled, items_indexed, metadata, result
    from g where status is not null
), letters as (
    insert into windlass_dead_letters (
        job_id, task, lane, original_job, error, details, fingerprint, first_died_at, died_at, version
    )
    select g.id, g.task, g.lane,
        (select {original_job} from windlass_jobs j join windlass_bodies b on b.job_id = j.id where j.id = g.id),
        coalesce(g.error, 'no message'),
        json_build_object('type', g.error_type, 'reason', g.reason, 'stack_trace', g.stack_trace, 'attempt', g.job_attempt,
            'execution', g.job_executions, 'worker', g.worker),
        g.fingerprint, {now}, {now}, (select w.app_version from windlass_workers w where w.id = g.worker)
    from g where :any_death::boolean and g.fingerprint is not null and g.final <> 'superseded' order by g.id
    on conflict (job_id) where closed_at is null and acknowledged_at is null do update set
        original_job = excluded.original_job, error = excluded.error, details = excluded.details,
        fingerprint = excluded.fingerprint, died_at = excluded.died_at, deaths = windlass_dead_letters.deaths + 1,
        -- That of the first death of its kind.
        version = case when windlass_dead_letters.fingerprint = excluded.fingerprint then windlass_dead_letters.version
            else excluded.version end
), closed as (
    update windlass_dead_letters d set closed_at = {now}, closed_reason = 'succeeded'
    where :any_recurring::boolean and d.closed_at is null and d.job_id in (
        select id from g where status = 'completed' and cadence is not null
    )
)
select id, state from finished

-- name: take
-- The limits inside are literals: otherwise the planner expects so many rows that it compiles the statement at every claim.
-- The lock sits in a lateral above the merge: concurrent claims skip each other's rows, and none locks more than :limit.
update windlass_jobs j set {taken}
where j.ctid = any(array(
    select w.tid from (select tid from ({arms}) as slices order by rank, run_at, id limit 1000) as merged
    cross join lateral (
        select k.ctid as tid from windlass_jobs k where k.ctid = merged.tid and k.state = 'pending' for update skip locked
    ) as w
    where (select version from windlass_gates) = :version
    limit :limit
))
returning j.id, j.task, j.lane, (select b.payload::text from windlass_bodies b where b.job_id = j.id), j.priority, j.run_at,
    j.attempt, j.executions, j.crashes, j.consecutive_failures, j.completed_runs, j.claimed_at, {claim_rest}

-- name: claim_rest
-- What most jobs have nothing of.
case when {is_bare} then null else json_build_array(
    (extract(epoch from j.slot_at) * 1000000)::bigint, j.max_attempts, j.retry, j.cadence, j.timeout_us, j.subject,
    j.correlation_id, j.parent_id, j.last_cursor, j.progress_count, j.result_count, j.target_count, j.traceparent
) end

-- name: pending_heads
-- Each walk repeats the condition of its index exactly, so that it is used.
with recursive heads as (
    (select lane, task, priority, run_at from windlass_jobs where state = 'pending' and crashes = 0
     order by lane, task, ~priority, run_at, id limit 1)
    union all
    select n.lane, n.task, n.priority, n.run_at from heads cross join lateral (
        select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
        where j.state = 'pending' and j.crashes = 0 and (j.lane, j.task) > (heads.lane, heads.task)
        order by j.lane, j.task, ~j.priority, j.run_at, j.id limit 1
    ) n
), suspects as (
    (select lane, task, priority, run_at from windlass_jobs where state = 'pending' and crashes > 0
     order by lane, task, ~priority, run_at, id limit 1)
    union all
    select n.lane, n.task, n.priority, n.run_at from suspects cross join lateral (
        select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
        where j.state = 'pending' and j.crashes > 0 and (j.lane, j.task) > (suspects.lane, suspects.task)
        order by j.lane, j.task, ~j.priority, j.run_at, j.id limit 1
    ) n
)

-- name: taken
state = 'running', wait_reason = null, attempt = j.attempt + 1, executions = j.executions + 1,
    token = :token, worker = :worker, claimed_at = {now}, lease_expires_at = {now} + :lease::interval,
    started_at = case when :started::boolean then {now} end,
    unique_slot = case when j.unique_scope = 'pending' then null else j.unique_slot end, updated_at = {now}

-- name: probe_alive
-- A scalar in place of `exists`, which the planner would answer by hashing all jobs.
case when b.probe_job_id is null then coalesce(b.half_opened_at + b.open_us * {us} > {now}, false)
    else coalesce((select p.token from windlass_jobs p where p.id = b.probe_job_id) = b.probe_token, false) end

-- name: aged
-- For a job that has waited longer than aging waits; the same as `aged` in core.
least({aging_top}, j.base_priority + {aging_gain} * (
    1 + floor((extract(epoch from {now} - j.run_at) * 1000000 - {aging_patience_us}) / {aging_step_us})
))::integer

-- name: listed
j.id, -j.id as rank, j.task, j.lane, j.state, j.wait_reason, j.priority, j.run_at, j.updated_at, j.closed_at, j.created_at,
    j.subject, j.correlation_id, j.parent_id, j.name, j.unique_key, j.last_error, j.spawn, j.cadence, j.token, j.worker

-- name: list_sliced
(:states::text is null or strpos(:states::text, ' ' || j.state || '/' || coalesce(j.wait_reason, '') || ' ') > 0)
    and (:tasks::text is null or j.task = any(array(select json_array_elements_text(:tasks::json))))
    and (:lanes::text is null or j.lane = any(array(select json_array_elements_text(:lanes::json))))

-- name: list_head
with candidates as materialized (
    select j.id,
        {job_matches}
        as is_match,
        case :sort::text
            when 'created_at' then :sign::bigint * j.id
            when 'updated_at' then :sign::bigint * (extract(epoch from j.updated_at) * 1000000)::bigint
            when 'run_at' then :sign::bigint * (extract(epoch from j.run_at) * 1000000)::bigint
            when 'priority' then :sign::bigint * j.priority
            when 'completed_at'
                then coalesce(:sign::bigint * (extract(epoch from j.closed_at) * 1000000)::bigint, 9223372036854775807)
            else :sign::bigint * {state_rank}
        end as first_key,
        case :sort::text when 'created_at' then 0
            when 'priority' then -:sign::bigint * (extract(epoch from j.run_at) * 1000000)::bigint
            else :sign::bigint * j.id end as second_key,
        case :sort::text when 'priority' then -:sign::bigint * j.id else 0 end as third_key
    from (

-- name: list_tail
    ) as j limit :depth::integer
), page as materialized (
    select c.id, c.first_key, c.second_key, c.third_key from candidates c
    where c.is_match and (c.first_key, c.second_key, c.third_key) > (:first_key::bigint, :second_key::bigint, :third_key::bigint)
    order by c.first_key, c.second_key, c.third_key limit :limit::integer offset :offset::integer
), head as (
    select count(*) as looked, count(*) filter (where is_match) as matched, coalesce(min(id), 0) as lowest,
        coalesce(max(id), 0) as highest
    from candidates
)
select h.looked, h.matched, h.lowest, h.highest, p.first_key, p.second_key, p.third_key, {job_columns}
from head h left join (page p join windlass_jobs j on j.id = p.id join windlass_bodies b on b.job_id = p.id) on true
order by p.first_key, p.second_key, p.third_key

-- name: run_columns
x.job_id, x.number, x.attempt, x.token, x.slot_at, x.worker, x.started_at, x.finished_at, x.wait_ms, x.status, x.reason, x.error,
    x.error_type, x.stack_trace, x.log_excerpt, x.cpu_time_ms, x.memory_peak_mb, x.items_crawled, x.items_indexed,
    x.metadata::text as metadata, x.result::text as result, x.stopped_at,
    (select w.app_version from windlass_workers w where w.id = x.worker) as app_version

-- name: running_run
-- The run that goes on has no row of its own yet: its number and its times are on the job.
select j.id as job_id, j.executions as number, j.attempt, j.token, j.slot_at, j.worker, j.started_at, null::timestamptz,
        greatest(0, floor(extract(epoch from j.started_at - j.run_at) * 1000))::bigint as wait_ms, 'running', null, null,
        null, null, {recorded_log}, null::bigint, null::integer, null::bigint, null::bigint, null, null, null::timestamptz,
        (select w.app_version from windlass_workers w where w.id = j.worker)
    from windlass_jobs j where j.id = :job_id::bigint and j.state = 'running' and j.started_at is not null

-- name: letters_head
with candidates as materialized (
    select d.id, d.died_at, (:task::text is null or d.task = :task::text)
        and (:fingerprint::text is null or d.fingerprint = :fingerprint::text)
        and (:since::timestamptz is null or d.died_at >= :since::timestamptz)
        and (:status::text is null or :status::text = case
            when d.closed_at is not null then 'closed' when d.acknowledged_at is not null then 'acknowledged' else 'open' end)
        as is_match
    from (

-- name: missed
-- What a rule about missed slots may want moved: written exactly as in the index, so that it is used.
case when j.wait_reason = 'recurrence' and not j.spawn then
        case j.state when 'scheduled' then position('"misfire":"' in j.cadence) > 0
            when 'pending' then position('"misfire":"skip"' in j.cadence) > 0 else false end
    else false end

-- name: asked_words
-- Each word in quotes, so that nothing in it is taken for an operator.
(select string_agg(quote_literal(rtrim(w, '*')) || case when right(w, 1) = '*' then ':*' else '' end, ' & ')
    from json_array_elements_text(:words::json) as w)::tsquery

-- name: run_ms
-- How long an execution `x` took.
floor(extract(epoch from x.finished_at - x.started_at) * 1000)::bigint

-- Every table carries the prefix: Windlass lives in the user's own database.
-- No foreign keys between the hot tables: each would lock the job's row once more for every execution written.

create sequence windlass_job_ids;

-- What changes as a job lives. fillfactor leaves room on the page, so that renewing a lease touches no index.
create table windlass_jobs (
    id bigint primary key default nextval('windlass_job_ids'),
    task text not null,
    lane text not null default 'default',
    state text not null,
    wait_reason text,
    priority integer not null default 0,
    base_priority integer not null default 0,
    run_at timestamptz not null,
    slot_at timestamptz,
    attempt integer not null default 0,
    max_attempts integer,
    executions integer not null default 0,
    crashes integer not null default 0,
    consecutive_failures integer not null default 0,
    completed_runs integer not null default 0,
    retry text not null default 'task',
    cadence text,
    spawn boolean not null default false,
    timeout_us bigint,
    token bigint,
    worker text,
    pull_id text,
    claimed_at timestamptz,
    lease_expires_at timestamptz,
    started_at timestamptz,
    finished_at timestamptz,
    closed_at timestamptz,
    paused_at timestamptz,
    held boolean not null default false,
    stop_requested boolean not null default false,
    rerun_at timestamptz,
    rerun_slot_at timestamptz,
    name text,
    unique_key text,
    unique_scope text,
    unique_slot text,
    child_key text,
    subject text,
    correlation_id text,
    parent_id bigint,
    last_error text,
    last_error_at timestamptz,
    last_cursor text,
    progress_message text,
    progress_count bigint not null default 0,
    result_count bigint not null default 0,
    target_count bigint,
    last_progress_at timestamptz,
    done_reason text,
    created_at timestamptz not null,
    updated_at timestamptz not null,

    constraint windlass_jobs_task check (char_length(task) between 1 and 200),
    constraint windlass_jobs_lane check (char_length(lane) between 1 and 200),
    constraint windlass_jobs_state
        check (state in ('scheduled', 'pending', 'running', 'paused', 'completed', 'failed', 'cancelled')),
    constraint windlass_jobs_wait_reason
        check (wait_reason in ('new', 'operator', 'delay', 'retry', 'lost', 'snooze', 'released', 'recurrence')),
    constraint windlass_jobs_waiting check ((wait_reason is not null) = (state in ('scheduled', 'pending', 'paused'))),
    constraint windlass_jobs_closed check ((closed_at is not null) = (state in ('completed', 'failed', 'cancelled'))),
    constraint windlass_jobs_paused check ((paused_at is not null) = (state = 'paused')),
    -- A cancelled job keeps its lease until the worker says it has stopped, or until the lease ends.
    constraint windlass_jobs_lease check (case
        when token is null then state <> 'running' and lease_expires_at is null and worker is null and pull_id is null
        else state in ('running', 'cancelled') and lease_expires_at is not null and worker is not null and claimed_at is not null
    end),
    constraint windlass_jobs_run_marks check (state = 'running' or not (stop_requested or rerun_at is not null)),
    constraint windlass_jobs_rerun_slot check (rerun_slot_at is null or rerun_at is not null),
    constraint windlass_jobs_stop check (cadence is not null or not stop_requested),
    constraint windlass_jobs_held check (not held or state in ('scheduled', 'pending', 'running')),
    constraint windlass_jobs_slot check (slot_at is null or cadence is not null),
    -- A template is never claimed: it waits, it spawns, it may be paused or ended.
    constraint windlass_jobs_template check (not spawn or (cadence is not null and state not in ('pending', 'running'))),
    constraint windlass_jobs_priority check (priority >= base_priority),
    constraint windlass_jobs_max_attempts check (max_attempts between 1 and 1000000),
    constraint windlass_jobs_counters check (
        attempt >= 0 and executions >= 0 and crashes >= 0 and consecutive_failures >= 0 and completed_runs >= 0
        and progress_count >= 0 and result_count >= 0 and target_count >= 0 and timeout_us > 0
    ),
    constraint windlass_jobs_unique_key check (char_length(unique_key) between 1 and 1000),
    constraint windlass_jobs_unique_scope check (
        unique_scope in ('pending', 'active', 'forever') and unique_key is not null or unique_scope is null and unique_key is null
    ),
    constraint windlass_jobs_unique_slot check (unique_slot is null or unique_key is not null and unique_slot = unique_key),
    constraint windlass_jobs_name check (name is null or char_length(name) between 1 and 255 and cadence is not null)
) with (fillfactor = 70);

-- Lane and task first: one arm of the claim reads one slice in order and never steps over another slice's backlog.
create index windlass_jobs_pending on windlass_jobs (lane, task, priority desc, run_at, id) where state = 'pending';
create index windlass_jobs_scheduled on windlass_jobs (run_at, id) where state = 'scheduled' and not spawn;
create index windlass_jobs_templates on windlass_jobs (run_at, id) where state = 'scheduled' and spawn;
-- Without the expiry: indexed, it would make every renewal rewrite the index.
create index windlass_jobs_leased on windlass_jobs (id) where token is not null;
-- A pull that is asked again after its answer was lost finds the lease it already has.
create unique index windlass_jobs_pulls on windlass_jobs (worker, pull_id) where pull_id is not null;
create index windlass_jobs_closed_at on windlass_jobs (state, closed_at, id) where closed_at is not null;
create unique index windlass_jobs_slots on windlass_jobs (task, unique_slot) where unique_slot is not null;
create unique index windlass_jobs_names on windlass_jobs (name) where name is not null;
create index windlass_jobs_subjects on windlass_jobs (subject, id) where subject is not null;
create index windlass_jobs_correlations on windlass_jobs (correlation_id, id) where correlation_id is not null;
create index windlass_jobs_parents on windlass_jobs (parent_id, id) where parent_id is not null;
create index windlass_jobs_recurring on windlass_jobs (id) where cadence is not null;

-- What a job is: written once at enqueue, so that claim and finish do not copy it into a new row version.
create table windlass_bodies (
    job_id bigint primary key,
    payload json not null,
    metadata json,
    description text,
    item_key json,
    collection text,
    created_by text,
    declared_by text,
    declared_at timestamptz
);

create table windlass_executions (
    job_id bigint not null,
    number integer not null,
    attempt integer not null,
    token bigint not null,
    slot_at timestamptz,
    worker text not null,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    wait_ms bigint not null,
    status text not null,
    reason text,
    error text,
    error_type text,
    stack_trace text,
    log_excerpt text,
    cpu_time_ms bigint,
    memory_peak_mb integer,
    items_crawled bigint,
    items_indexed bigint,
    metadata json,
    result json,
    stopped_at timestamptz,
    primary key (job_id, number),
    constraint windlass_executions_status check (status in ('completed', 'failed', 'cancelled')),
    constraint windlass_executions_reason check (case status
        when 'completed' then reason is null
        when 'failed' then reason is not null and reason in ('error', 'timed_out', 'lease_expired', 'worker_crashed')
        else reason is not null and reason in ('released', 'snoozed', 'cancelled', 'stopped', 'superseded')
    end),
    constraint windlass_executions_number check (number >= 1 and attempt >= 0 and wait_ms >= 0),
    constraint windlass_executions_times check (finished_at >= started_at)
);

create table windlass_dead_letters (
    id bigint generated always as identity primary key,
    job_id bigint not null,
    task text not null,
    lane text not null,
    original_job json not null,
    error text not null,
    details json,
    fingerprint text not null,
    deaths integer not null default 1,
    first_died_at timestamptz not null,
    died_at timestamptz not null,
    acknowledged_at timestamptz,
    acknowledged_by text,
    note text,
    closed_at timestamptz,
    closed_reason text,
    constraint windlass_dead_letters_acknowledged check ((acknowledged_at is null) = (acknowledged_by is null)),
    constraint windlass_dead_letters_closed
        check ((closed_at is null) = (closed_reason is null) and closed_reason in ('requeued', 'retried', 'succeeded', 'overridden'))
);
create unique index windlass_dead_letters_open on windlass_dead_letters (job_id)
    where closed_at is null and acknowledged_at is null;
create index windlass_dead_letters_died on windlass_dead_letters (died_at, id);
create index windlass_dead_letters_jobs on windlass_dead_letters (job_id, id);
create index windlass_dead_letters_fingerprints on windlass_dead_letters (fingerprint, id);

create table windlass_breakers (
    name text primary key,
    state text not null default 'closed',
    failures integer not null default 0,
    successes integer not null default 0,
    threshold integer not null,
    open_us bigint not null,
    last_failure_at timestamptz,
    opened_at timestamptz,
    probe_at timestamptz,
    half_opened_at timestamptz,
    probe_job_id bigint,
    probe_token bigint,
    last_probe_job_id bigint,
    is_forced boolean not null default false,
    updated_at timestamptz not null,
    constraint windlass_breakers_state check (state in ('closed', 'open', 'half_open'))
);
create table windlass_breaker_events (
    id bigint generated always as identity primary key,
    breaker text not null,
    state text not null,
    reason text not null,
    job_id bigint,
    at timestamptz not null
);
create index windlass_breaker_events_at on windlass_breaker_events (breaker, id);

create table windlass_items (
    id bigint generated always as identity primary key,
    collection text not null,
    key text not null,
    job_id bigint not null,
    data json not null,
    created_at timestamptz not null,
    unique (collection, key)
);
create index windlass_items_jobs on windlass_items (job_id, id);

create table windlass_idempotency (
    job_id bigint not null,
    key text not null,
    token bigint,
    answer json,
    created_at timestamptz not null,
    primary key (job_id, key)
);

create table windlass_workers (
    id text primary key,
    kind text not null default 'worker',
    host text not null,
    pid integer not null,
    version text not null,
    pools json not null,
    tasks json not null,
    running integer not null default 0,
    started_at timestamptz not null,
    seen_at timestamptz not null,
    stopped_at timestamptz
);
create index windlass_workers_seen on windlass_workers (seen_at);

create table windlass_lanes (
    name text primary key,
    paused_at timestamptz,
    paused_by text,
    updated_at timestamptz not null
);
create table windlass_tasks (
    name text primary key,
    lane text not null,
    options json not null default '{}',
    paused_at timestamptz,
    paused_by text,
    first_seen_at timestamptz not null,
    seen_at timestamptz not null
);
-- One number that every pause, resume or breaker change moves on: a claim made from an older view of the gates takes nothing.
create table windlass_gates (
    only_row boolean primary key default true check (only_row),
    version bigint not null,
    -- Names this set of tables, so that a caller's connection to another one is noticed.
    database_id text not null default md5(random()::text || clock_timestamp()::text)
);
insert into windlass_gates (version) values (1);

create table windlass_sources (
    id text primary key,
    name text not null,
    url text not null,
    last_run_at timestamptz,
    metadata json,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    constraint windlass_sources_name check (char_length(name) between 1 and 255)
);
create index windlass_sources_stale on windlass_sources (last_run_at, id);

create table windlass_settings (
    name text primary key,
    value text not null,
    updated_by text,
    updated_at timestamptz not null
);

create table windlass_tokens (
    id bigint generated always as identity primary key,
    name text not null,
    role text not null,
    lanes json,
    digest text not null unique,
    created_by text,
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    seen_at timestamptz,
    constraint windlass_tokens_role check (role in ('viewer', 'producer', 'operator', 'admin', 'worker'))
);
create table windlass_sessions (
    digest text primary key,
    principal text not null,
    role text not null,
    csrf text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null
);
create index windlass_sessions_expiry on windlass_sessions (expires_at);

create table windlass_alerts (
    id bigint generated always as identity primary key,
    rule text not null,
    subject text not null default '',
    message text not null,
    value double precision,
    raised_at timestamptz not null,
    seen_at timestamptz not null,
    cleared_at timestamptz
);
create unique index windlass_alerts_open on windlass_alerts (rule, subject) where cleared_at is null;

create table windlass_audit (
    id bigint generated always as identity primary key,
    at timestamptz not null,
    principal text not null,
    action text not null,
    target text,
    outcome text not null default 'done',
    details json,
    request_id text,
    chain text
);
create index windlass_audit_unchained on windlass_audit (id) where chain is null;
create index windlass_audit_targets on windlass_audit (target, id);

create table windlass_chores (
    name text primary key,
    version bigint not null default 0,
    due_at timestamptz,
    paused_at timestamptz,
    last_run_at timestamptz,
    last_rows bigint,
    last_duration_ms bigint,
    last_error text,
    worker text,
    cursor text
);

-- Counts are kept by the database itself: a statement-level trigger appends what each statement moved, so no verb can forget
-- it, and nobody waits for a hot counter row. Reads add up both tables; upkeep folds the deltas.
create table windlass_counts (
    task text not null,
    lane text not null,
    state text not null,
    wait_reason text not null default '',
    jobs bigint not null,
    primary key (task, lane, state, wait_reason)
);
create table windlass_count_deltas (
    id bigint generated always as identity primary key,
    task text not null,
    lane text not null,
    state text not null,
    wait_reason text not null default '',
    jobs bigint not null
);

-- Runs by task, status and reason since the beginning; survives pruning. Two halves, as the counts have.
create table windlass_totals (
    task text not null,
    status text not null,
    reason text not null default '',
    runs bigint not null,
    duration_ms bigint not null,
    primary key (task, status, reason)
);
create table windlass_total_deltas (
    id bigint generated always as identity primary key,
    task text not null,
    status text not null,
    reason text not null default '',
    runs bigint not null,
    duration_ms bigint not null
);
create table windlass_minutes (
    minute timestamptz not null,
    task text not null,
    completed bigint not null default 0,
    failed bigint not null default 0,
    wait_histogram json not null default '{}',
    run_histogram json not null default '{}',
    primary key (minute, task)
);
create table windlass_minute_deltas (
    id bigint generated always as identity primary key,
    minute timestamptz not null,
    task text not null,
    counts json not null
);

create function windlass_count_inserted() returns trigger language plpgsql as $$
begin
    insert into windlass_count_deltas (task, lane, state, wait_reason, jobs)
    select task, lane, state, coalesce(wait_reason, ''), count(*) from new_rows group by 1, 2, 3, 4;
    return null;
end $$;
create function windlass_count_deleted() returns trigger language plpgsql as $$
begin
    insert into windlass_count_deltas (task, lane, state, wait_reason, jobs)
    select task, lane, state, coalesce(wait_reason, ''), -count(*) from old_rows group by 1, 2, 3, 4;
    return null;
end $$;
create function windlass_count_updated() returns trigger language plpgsql as $$
begin
    insert into windlass_count_deltas (task, lane, state, wait_reason, jobs)
    select task, lane, state, reason, sum(n) from (
        select task, lane, state, coalesce(wait_reason, '') as reason, 1 as n from new_rows
        union all
        select task, lane, state, coalesce(wait_reason, ''), -1 from old_rows
    ) as moved group by 1, 2, 3, 4 having sum(n) <> 0;
    return null;
end $$;
create trigger windlass_jobs_count_inserted after insert on windlass_jobs
    referencing new table as new_rows for each statement execute function windlass_count_inserted();
create trigger windlass_jobs_count_deleted after delete on windlass_jobs
    referencing old table as old_rows for each statement execute function windlass_count_deleted();
create trigger windlass_jobs_count_updated after update on windlass_jobs
    referencing old table as old_rows new table as new_rows for each statement execute function windlass_count_updated();

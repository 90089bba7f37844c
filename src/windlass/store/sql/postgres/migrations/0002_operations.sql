-- The breaker that gates a task's claims; what it opens for and for how long is said by the code that records.
alter table windlass_tasks add column breaker text;

-- A collection is read in the order of its items, page by page.
create index windlass_items_collections on windlass_items (collection, id);

-- A task may be paused before any process declared it; only declared ones are known.
alter table windlass_tasks add column is_declared boolean not null default true;

-- Retention walks jobs with a history; the count is in the index, so that short ones cost no look at the job.
create index windlass_jobs_histories on windlass_jobs (id, executions) where executions > 1;
create index windlass_dead_letters_settled on windlass_dead_letters (coalesce(closed_at, acknowledged_at), id);
-- Letters are listed by their death: those nobody has dealt with, and those of one kind.
create index windlass_dead_letters_unsettled on windlass_dead_letters (died_at, id)
    where closed_at is null and acknowledged_at is null;
drop index windlass_dead_letters_fingerprints;
create index windlass_dead_letters_kinds on windlass_dead_letters (fingerprint, died_at, id);

-- The order in which lines were chained: a line may become visible after one with a higher id.
alter table windlass_audit add column place bigint;
alter table windlass_audit add constraint windlass_audit_place check ((chain is null) = (place is null));
create unique index windlass_audit_places on windlass_audit (place) where place is not null;

create function windlass_audit_refuse() returns trigger language plpgsql as $$
begin
    raise exception 'windlass_audit is append-only' using errcode = 'integrity_constraint_violation';
end $$;
create trigger windlass_audit_edited before update on windlass_audit for each row
    when (old.chain is not null or new.chain is null
        or (new.id, new.at, new.principal, new.action, new.target, new.outcome, new.details::text, new.request_id)
            is distinct from (old.id, old.at, old.principal, old.action, old.target, old.outcome, old.details::text, old.request_id))
    execute function windlass_audit_refuse();
create trigger windlass_audit_deleted before delete on windlass_audit for each row execute function windlass_audit_refuse();
create trigger windlass_audit_emptied before truncate on windlass_audit for each statement execute function windlass_audit_refuse();

-- One arm of a list reads the jobs of one task, lane and state in order of their number. A running job has no entry: it is found
-- among the leases, and claiming it costs nothing here. By the negated number, so that no arm can be planned as a walk along the
-- primary key: that is fast until the jobs asked for are rare or old.
create index windlass_jobs_listed on windlass_jobs (task, lane, state, (-id)) where token is null;

-- Ended runs, counted by the database itself as the jobs are: each statement appends what it ended, upkeep folds it.
-- A bucket is the number of bounds that a time in milliseconds has reached (windlass.core.histogram has the same list).
drop table windlass_total_deltas;
drop table windlass_minute_deltas;
drop table windlass_totals;
drop table windlass_minutes;
create table windlass_totals (
    task text not null,
    status text not null,
    reason text not null default '',
    runs bigint not null,
    wait_ms bigint not null,
    duration_ms bigint not null,
    primary key (task, status, reason)
);
-- Task '' stands for all tasks together.
create table windlass_minutes (
    minute timestamptz not null,
    task text not null,
    completed bigint not null,
    failed bigint not null,
    cancelled bigint not null,
    wait_ms bigint not null,
    duration_ms bigint not null,
    wait_histogram json not null,
    run_histogram json not null,
    primary key (task, minute)
);
create index windlass_minutes_age on windlass_minutes (minute);
create table windlass_run_deltas (
    id bigint generated always as identity primary key,
    minute timestamptz not null,
    task text not null,
    status text not null,
    reason text not null default '',
    wait_bucket integer not null,
    run_bucket integer not null,
    runs bigint not null,
    wait_ms bigint not null,
    duration_ms bigint not null
);

create function windlass_bucket(ms bigint) returns integer language sql immutable parallel safe return
    width_bucket(ms, array[
        1, 2, 2, 2, 3, 4, 4, 5, 7, 8, 10, 13, 16, 20, 25, 32, 40, 50, 63, 80, 100, 125, 160, 200, 250, 315, 400, 500,
        630, 800, 1000, 1250, 1600, 2000, 2500, 3150, 4000, 5000, 6300, 8000, 10000, 12500, 16000, 20000, 25000,
        31500, 40000, 50000, 63000, 80000, 100000, 125000, 160000, 200000, 250000, 315000, 400000, 500000, 630000,
        800000, 1000000, 1250000, 1600000, 2000000, 2500000, 3150000, 4000000, 5000000, 6300000, 8000000, 10000000,
        12500000, 16000000, 20000000, 25000000, 31500000, 40000000, 50000000, 63000000, 80000000, 100000000
    ]::bigint[]);
-- Without sequential scans: the planner knows nothing of how many rows a statement wrote, and a plan made while the table was
-- small would read all of it later.
create function windlass_count_runs() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into windlass_run_deltas (minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select minute, task, status, reason, wait_bucket, run_bucket, count(*), sum(wait_ms), sum(duration_ms) from (
        select minute, task, status, reason, wait_ms, duration_ms,
            windlass_bucket(wait_ms) as wait_bucket, windlass_bucket(duration_ms) as run_bucket
        from (
            select date_trunc('minute', n.finished_at, 'UTC') as minute, n.status, coalesce(n.reason, '') as reason, n.wait_ms,
                (select j.task from windlass_jobs j where j.id = n.job_id) as task,
                floor(extract(epoch from n.finished_at - n.started_at) * 1000)::bigint as duration_ms
            from new_rows n
        ) as ended
    ) as measured where task is not null group by 1, 2, 3, 4, 5, 6;
    return null;
end $$;
create trigger windlass_executions_counted after insert on windlass_executions
    referencing new table as new_rows for each statement execute function windlass_count_runs();
-- What was there before this change is counted too.
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select j.task, x.status, coalesce(x.reason, ''), count(*), sum(x.wait_ms),
    sum(floor(extract(epoch from x.finished_at - x.started_at) * 1000)::bigint)
from windlass_executions x join windlass_jobs j on j.id = x.job_id group by 1, 2, 3;
-- Adds two histograms up, bucket by bucket.
create function windlass_merged(one json, other json) returns json language sql immutable parallel safe return (
    select coalesce(json_object_agg(bucket, runs), '{}') from (
        select key::integer as bucket, sum(value::bigint) as runs
        from (select key, value from json_each_text(one) union all select key, value from json_each_text(other)) as parts
        group by 1 order by 1
    ) as added
);

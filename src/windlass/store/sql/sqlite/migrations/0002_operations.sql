-- The breaker that gates a task's claims; what it opens for and for how long is said by the code that records.
alter table windlass_tasks add column breaker text;

-- A collection is read in the order of its items, page by page.
create index windlass_items_collections on windlass_items (collection, id);

-- A task may be paused before any process declared it; only declared ones are known.
alter table windlass_tasks add column is_declared integer not null default 1 check (is_declared in (0, 1));

-- Retention walks jobs with a history; the count is in the index, so that short ones cost no look at the job.
create index windlass_jobs_histories on windlass_jobs (id, executions) where executions > 1;
create index windlass_dead_letters_settled on windlass_dead_letters (coalesce(closed_at, acknowledged_at), id);
-- Letters are listed by their death: those nobody has dealt with, and those of one kind.
create index windlass_dead_letters_unsettled on windlass_dead_letters (died_at, id)
    where closed_at is null and acknowledged_at is null;
drop index windlass_dead_letters_fingerprints;
create index windlass_dead_letters_kinds on windlass_dead_letters (fingerprint, died_at, id);

-- The order in which lines were chained: a line may become visible after one with a higher id.
alter table windlass_audit add column place integer check ((chain is null) = (place is null));
create unique index windlass_audit_places on windlass_audit (place) where place is not null;

create trigger windlass_audit_edited before update on windlass_audit
when old.chain is not null or new.chain is null
    or (new.id, new.at, new.principal, new.action, new.target, new.outcome, new.details, new.request_id)
        is not (old.id, old.at, old.principal, old.action, old.target, old.outcome, old.details, old.request_id) begin
    select raise(abort, 'windlass_audit is append-only');
end;
create trigger windlass_audit_deleted before delete on windlass_audit begin
    select raise(abort, 'windlass_audit is append-only');
end;

-- One arm of a list reads the jobs of one task, lane and state in order of their number, which ends every index by itself.
-- A running job has no entry: it is found among the leases, and claiming it costs nothing here.
create index windlass_jobs_listed on windlass_jobs (task, lane, state) where token is null;

-- Ended runs, counted by the database itself as the jobs are. There is one writer at a time, so the trigger adds them up in
-- place; upkeep folds them as on PostgreSQL. A bucket is the number of bounds that a time in milliseconds has reached
-- (windlass.core.histogram has the same list).
drop table windlass_total_deltas;
drop table windlass_minute_deltas;
drop table windlass_totals;
drop table windlass_minutes;
create table windlass_totals (
    task text not null,
    status text not null,
    reason text not null default '',
    runs integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    primary key (task, status, reason)
) strict;
-- Task '' stands for all tasks together.
create table windlass_minutes (
    minute integer not null,
    task text not null,
    completed integer not null,
    failed integer not null,
    cancelled integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    wait_histogram text not null,
    run_histogram text not null,
    primary key (task, minute)
) strict;
create index windlass_minutes_age on windlass_minutes (minute);
create table windlass_run_deltas (
    minute integer not null,
    task text not null,
    status text not null,
    reason text not null default '',
    wait_bucket integer not null,
    run_bucket integer not null,
    runs integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    primary key (minute, task, status, reason, wait_bucket, run_bucket)
) strict, without rowid;

-- SQLite has no logarithm everywhere: a bucket follows from how many digits a number has and from the first three.
create trigger windlass_executions_counted after insert on windlass_executions begin
    insert into windlass_run_deltas (minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select new.finished_at - new.finished_at % 60000000, j.task, new.status, coalesce(new.reason, ''),
        case when new.wait_ms < 1 then 0 when new.wait_ms >= 100000000 then 81 else 10 * length(new.wait_ms) - 9 + case
            when substr(new.wait_ms || '00', 1, 3) < '125' then 0 when substr(new.wait_ms || '00', 1, 3) < '160' then 1
            when substr(new.wait_ms || '00', 1, 3) < '200' then 2 when substr(new.wait_ms || '00', 1, 3) < '250' then 3
            when substr(new.wait_ms || '00', 1, 3) < '315' then 4 when substr(new.wait_ms || '00', 1, 3) < '400' then 5
            when substr(new.wait_ms || '00', 1, 3) < '500' then 6 when substr(new.wait_ms || '00', 1, 3) < '630' then 7
            when substr(new.wait_ms || '00', 1, 3) < '800' then 8 else 9 end end,
        case when d.ms < 1 then 0 when d.ms >= 100000000 then 81 else 10 * length(d.ms) - 9 + case
            when substr(d.ms || '00', 1, 3) < '125' then 0 when substr(d.ms || '00', 1, 3) < '160' then 1
            when substr(d.ms || '00', 1, 3) < '200' then 2 when substr(d.ms || '00', 1, 3) < '250' then 3
            when substr(d.ms || '00', 1, 3) < '315' then 4 when substr(d.ms || '00', 1, 3) < '400' then 5
            when substr(d.ms || '00', 1, 3) < '500' then 6 when substr(d.ms || '00', 1, 3) < '630' then 7
            when substr(d.ms || '00', 1, 3) < '800' then 8 else 9 end end,
        1, new.wait_ms, d.ms
    from windlass_jobs j cross join (select (new.finished_at - new.started_at) / 1000 as ms) as d
    where j.id = new.job_id
    on conflict do update set runs = runs + 1, wait_ms = wait_ms + excluded.wait_ms,
        duration_ms = duration_ms + excluded.duration_ms;
end;
-- What was there before this change is counted too.
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select j.task, x.status, coalesce(x.reason, ''), count(*), sum(x.wait_ms), sum((x.finished_at - x.started_at) / 1000)
from windlass_executions x join windlass_jobs j on j.id = x.job_id group by 1, 2, 3;

-- Runs are counted by lane as well. A minute has a row for each task in each lane, and one of all tasks (task '') for each lane;
-- what was counted before has no lane.
drop trigger windlass_executions_counted;
create table windlass_run_deltas_by_lane (
    minute integer not null,
    task text not null,
    lane text not null default '',
    status text not null,
    reason text not null default '',
    wait_bucket integer not null,
    run_bucket integer not null,
    runs integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    primary key (minute, task, lane, status, reason, wait_bucket, run_bucket)
) strict, without rowid;
insert into windlass_run_deltas_by_lane (minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
select minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms from windlass_run_deltas;
drop table windlass_run_deltas;
alter table windlass_run_deltas_by_lane rename to windlass_run_deltas;
create table windlass_minutes_by_lane (
    minute integer not null,
    task text not null,
    lane text not null default '',
    completed integer not null,
    failed integer not null,
    cancelled integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    wait_histogram text not null,
    run_histogram text not null,
    primary key (task, minute, lane)
) strict;
insert into windlass_minutes_by_lane (
    minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram
)
select minute, task, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram from windlass_minutes;
drop table windlass_minutes;
alter table windlass_minutes_by_lane rename to windlass_minutes;
create index windlass_minutes_age on windlass_minutes (minute);

-- How long the runs of a task waited and took, from this change on and for ever: minutes are deleted in time, and what is read
-- from outside as a counter must never become smaller.
create table windlass_run_times (
    task text primary key,
    runs integer not null,
    wait_ms integer not null,
    duration_ms integer not null,
    wait_histogram text not null,
    run_histogram text not null
) strict;

create trigger windlass_executions_counted after insert on windlass_executions begin
    insert into windlass_run_deltas (minute, task, lane, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select new.finished_at - new.finished_at % 60000000, j.task, j.lane, new.status, coalesce(new.reason, ''),
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

-- Runs are counted by lane as well. A minute has a row for each task in each lane, and one of all tasks (task '') for each lane;
-- what was counted before has no lane.
alter table windlass_run_deltas add column lane text not null default '';
alter table windlass_minutes add column lane text not null default '';
alter table windlass_minutes drop constraint windlass_minutes_pkey;
alter table windlass_minutes add primary key (task, minute, lane);

-- How long the runs of a task waited and took, from this change on and for ever: minutes are deleted in time, and what is read
-- from outside as a counter must never become smaller.
create table windlass_run_times (
    task text primary key,
    runs bigint not null,
    wait_ms bigint not null,
    duration_ms bigint not null,
    wait_histogram json not null,
    run_histogram json not null
);

-- The fence keeps the look-up of the job one probe of its index for each run, whatever the planner believes.
create or replace function windlass_count_runs() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into windlass_run_deltas (minute, task, lane, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select minute, task, lane, status, reason, wait_bucket, run_bucket, count(*), sum(wait_ms), sum(duration_ms) from (
        select minute, task, lane, status, reason, wait_ms, duration_ms,
            windlass_bucket(wait_ms) as wait_bucket, windlass_bucket(duration_ms) as run_bucket
        from (
            select date_bin('1 minute', n.finished_at, timestamptz 'epoch') as minute, n.status,
                coalesce(n.reason, '') as reason, n.wait_ms, j.task, j.lane,
                (date_part('epoch', n.finished_at - n.started_at) * 1000000)::bigint / 1000 as duration_ms
            from new_rows n cross join lateral (
                select k.task, k.lane from windlass_jobs k where k.id = n.job_id offset 0
            ) as j
        ) as ended
    ) as measured group by 1, 2, 3, 4, 5, 6, 7;
    return null;
end $$;

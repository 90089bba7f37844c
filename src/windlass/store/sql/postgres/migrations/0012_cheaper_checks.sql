-- The same sums by cheaper functions: no time zone is looked up, and no decimal numbers are made.
create or replace function windlass_count_runs() returns trigger language plpgsql set enable_seqscan = off as $$
begin
    insert into windlass_run_deltas (minute, task, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms)
    select minute, task, status, reason, wait_bucket, run_bucket, count(*), sum(wait_ms), sum(duration_ms) from (
        select minute, task, status, reason, wait_ms, duration_ms,
            windlass_bucket(wait_ms) as wait_bucket, windlass_bucket(duration_ms) as run_bucket
        from (
            select date_bin('1 minute', n.finished_at, timestamptz 'epoch') as minute, n.status,
                coalesce(n.reason, '') as reason, n.wait_ms,
                (select j.task from windlass_jobs j where j.id = n.job_id) as task,
                (date_part('epoch', n.finished_at - n.started_at) * 1000000)::bigint / 1000 as duration_ms
            from new_rows n
        ) as ended
    ) as measured where task is not null group by 1, 2, 3, 4, 5, 6;
    return null;
end $$;

select c.task as type, c.status, sum(c.jobs) as job_count from (
    select task, jobs, case when state = 'running' then 'processing' when state = 'failed' then 'dead'
        when state = 'scheduled' and wait_reason in ('retry', 'lost') then 'failed' else state end as status from windlass_counts
    union all
    select task, jobs, case when state = 'running' then 'processing' when state = 'failed' then 'dead'
        when state = 'scheduled' and wait_reason in ('retry', 'lost') then 'failed' else state end from windlass_count_deltas
) as c group by c.task, c.status having sum(c.jobs) <> 0

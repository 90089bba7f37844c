-- name: oldest_pending
-- One probe for each lane, task and priority with pending work, however long the backlog behind it is.
with recursive heads (lane, task, priority) as (
    select c.lane, c.task, (
        select max(n.priority) from windlass_jobs n
        where n.state = 'pending' and n.crashes = 0 and n.lane = c.lane and n.task = c.task
    )
    from windlass_counts c where c.state = 'pending' and c.jobs > 0
    union
    select h.lane, h.task, (
        select max(n.priority) from windlass_jobs n
        where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task and n.priority < h.priority
    )
    from heads h where h.priority is not null
)
select task, lane, min(run_at) from (
    select * from (
        select h.task, h.lane, (
            select min(n.run_at) from windlass_jobs n
            where n.state = 'pending' and n.crashes = 0 and n.lane = h.lane and n.task = h.task and n.priority = h.priority
        ) as run_at
        from heads h where h.priority is not null limit 10000
    )
    union all select * from (
        select n.task, n.lane, n.run_at from windlass_jobs n indexed by windlass_jobs_suspects
        where n.state = 'pending' and n.crashes > 0 limit 10000
    )
) group by task, lane order by 1, 2

-- name: pending_priorities
select priority, count(*) from (
    select priority from windlass_jobs indexed by windlass_jobs_pending where state = 'pending' and crashes = 0
    union all select priority from windlass_jobs indexed by windlass_jobs_suspects where state = 'pending' and crashes > 0
    limit 2001
) as found
group by priority order by priority desc

-- name: payload_sizes
select j.task, j.lane, length(cast(b.payload as blob)) from (
    select id, task, lane from windlass_jobs not indexed where id > :above order by id desc limit :limit
) as j join windlass_bodies b on b.job_id = j.id

-- name: store_size
select (select page_count from pragma_page_count) * (select page_size from pragma_page_size),
    (select max(version) from windlass_schema)

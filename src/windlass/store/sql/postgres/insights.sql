-- name: oldest_pending
-- One probe for each lane, task and priority with pending work, however long the backlog behind it is.
with recursive heads as (
    (select lane, task, priority, run_at from windlass_jobs where state = 'pending' and crashes = 0
     order by lane, task, ~priority, run_at, id limit 1)
    union all
    select n.lane, n.task, n.priority, n.run_at from heads h cross join lateral (
        (select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
         where j.state = 'pending' and j.crashes = 0 and j.lane = h.lane and j.task = h.task and ~j.priority > ~h.priority
         order by ~j.priority, j.run_at, j.id limit 1)
        union all
        (select j.lane, j.task, j.priority, j.run_at from windlass_jobs j
         where j.state = 'pending' and j.crashes = 0 and (j.lane, j.task) > (h.lane, h.task)
         order by j.lane, j.task, ~j.priority, j.run_at, j.id limit 1)
        limit 1
    ) as n
)
select task, lane, min(run_at) from (
    (select task, lane, run_at from heads limit 10000)
    union all
    (select task, lane, run_at from windlass_jobs where state = 'pending' and crashes > 0 limit 10000)
) as found group by task, lane order by 1, 2

-- name: pending_priorities
select priority, count(*) from (
    select priority from (
        (select priority from windlass_jobs where state = 'pending' and crashes = 0
         order by lane, task, ~priority, run_at, id limit 2001)
        union all (select priority from windlass_jobs where state = 'pending' and crashes > 0 limit 2001)
    ) as pending limit 2001
) as found
group by priority order by priority desc

-- name: payload_sizes
-- The fence keeps it one probe for each job: a plan made on empty tables would read all bodies.
select j.task, j.lane, b.size from (
    select id, task, lane from windlass_jobs where id > :above::bigint order by id desc limit :limit
) as j cross join lateral (
    select octet_length(p.payload::text)::bigint as size from windlass_bodies p where p.job_id = j.id offset 0
) as b

-- name: store_size
select (
    select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c
    where c.relkind = 'r' and c.relname like 'windlass\_%' and c.relnamespace = (
        select relnamespace from pg_class where oid = 'windlass_jobs'::regclass
    )
), (select max(version) from windlass_schema)

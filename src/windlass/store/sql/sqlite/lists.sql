-- name: id_floor
-- Numbers are given out almost in the order of time: halving finds where a time begins with one probe for each bit.
with recursive search (low, high) as (
    select coalesce((select min(id) from windlass_jobs), 0), coalesce((select max(id) from windlass_jobs), 0) + 1
    union all
    select
        case when (select j.created_at from windlass_jobs j where j.id >= (low + high) / 2 order by j.id limit 1) < :since
            then (low + high) / 2 + 1 else low end,
        case when (select j.created_at from windlass_jobs j where j.id >= (low + high) / 2 order by j.id limit 1) < :since
            then high else (low + high) / 2 end
    from search where low < high
)
select max(low) from search

-- name: list_subject_{direction}
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_subjects 
    where j.subject = :subject and j.id > :above and j.id < :below order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_correlation_{direction}
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_correlations 
    where j.correlation_id = :correlation_id and j.id > :above and j.id < :below order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_own_{direction}
-- A job's own UUID means the job and its children, beside those that carry it as their correlation id.
{list_head}
select {listed} from windlass_jobs j where j.id in (
        select id from (select k.id from windlass_jobs k indexed by windlass_jobs_correlations
            where k.correlation_id = :correlation_id and k.id > :above and k.id < :below order by k.id {down} limit {most_listed})
        union select k.id from windlass_jobs k where k.id = :own and k.id > :above and k.id < :below
        union select id from (select k.id from windlass_jobs k indexed by windlass_jobs_parents
            where k.parent_id = :own and k.id > :above and k.id < :below order by k.id {down} limit {most_listed})
    ) order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_parent_{direction}
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_parents 
    where j.parent_id = :parent_id and j.id > :above and j.id < :below order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_gathered_{direction}
-- The first of each slice: no more rows than slices times a share, and a text that does not grow with them.
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select k.id from windlass_jobs k indexed by windlass_jobs_listed
        where k.token is null and k.task = s.value ->> 'task' and k.lane = s.value ->> 'lane'
            and k.state = s.value ->> 'state'
          and k.id > :above and k.id < :below
        order by k.id {down} limit :share
    )
    union all
    select {listed} from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
{list_tail}

-- name: list_slices_{direction}_arm
select j.id from windlass_jobs j indexed by windlass_jobs_listed
where j.token is null and j.task = :task_{i} and j.lane = :lane_{i} and j.state = :state_{i} and j.id > :above
    and j.id < :below

-- name: list_slices_{direction}
-- For pages so deep that gathering would read too much. SQLite merges the arms lazily by itself, and copies what they read
-- at each step: so only numbers go through it.
{list_head}
select {listed} from (
{arms}
union all select j.id from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
    order by id {down} limit {most_listed}) as slices cross join windlass_jobs j on j.id = slices.id
{list_tail}

-- name: list_closed_{direction}_arm
select {listed} from windlass_jobs j indexed by windlass_jobs_closed_at
where j.closed_at is not null and j.state = :state_{i} and (j.closed_at, j.id) {before} (:edge_at, :edge_id)

-- name: list_closed_{direction}
{list_head}
{arms}
    order by closed_at {down}, id {down} limit {most_listed}
{list_tail}

-- name: list_due_{direction}
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_scheduled
    where j.state = 'scheduled' and not j.spawn and (j.run_at, j.id) {before} (:edge_at, :edge_id)
    union all select {listed} from windlass_jobs j indexed by windlass_jobs_templates
    where j.state = 'scheduled' and j.spawn and (j.run_at, j.id) {before} (:edge_at, :edge_id)
    order by run_at {down}, id {down} limit {most_listed}
{list_tail}

-- name: list_waiting_{direction}
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_pending
            where k.state = 'pending' and k.crashes = 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority {before}= :edge_priority and (k.priority {before} :edge_priority or (k.run_at, k.id) {after} (:edge_at, :edge_id))
            order by k.priority {down}, k.run_at {up}, k.id {up} limit :share
        )
        union all
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_suspects
            where k.state = 'pending' and k.crashes > 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority {before}= :edge_priority and (k.priority {before} :edge_priority or (k.run_at, k.id) {after} (:edge_at, :edge_id))
            order by k.priority {down}, k.run_at {up}, k.id {up} limit :share
        )
    )
{list_tail}

-- name: identity
select database_id from windlass_gates

-- name: list_tree
with recursive above (id, parent_id, steps) as (
    select j.id, j.parent_id, 0 from windlass_jobs j where j.id = :job_id
    union all
    select j.id, j.parent_id, a.steps + 1 from above a join windlass_jobs j on j.id = a.parent_id where a.steps < 20
), tree (id, depth) as (
    select id, 0 from (select id from above order by steps desc limit 1)
    union all
    -- SQLite queues all children of a job before it counts them.
    select j.id, t.depth + 1 from tree t join windlass_jobs j on j.parent_id = t.id
    where t.depth < 20 and j.id <= coalesce(
        (select k.id from windlass_jobs k where k.parent_id = t.id order by k.id limit 1 offset 500), 9223372036854775807
    )
    limit {most_related}
)
select p.depth, {job_columns} from tree p join windlass_jobs j on j.id = p.id join windlass_bodies b on b.job_id = p.id
order by p.depth, p.id

-- name: fold_runs
-- Each statement takes the same rows, the first by their key: no other process writes in this transaction.
insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
select task, status, reason, sum(runs), sum(wait_ms), sum(duration_ms) from {taken_runs} as taken
where true group by 1, 2, 3
on conflict do update set runs = runs + excluded.runs, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms;
with counted as materialized (
    select minute, task, lane, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from {taken_runs} as taken
    where reason not in ('released', 'snoozed')
    union all
    select minute, '', lane, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from {taken_runs} as taken
    where reason not in ('released', 'snoozed')
), parts as materialized (
    {run_parts}
)
insert into windlass_minutes (
    minute, task, lane, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram
)
select minute, task, lane, sum(completed), sum(failed), sum(cancelled), sum(wait_ms), sum(duration_ms),
    json_group_object(bucket, runs) filter (where kind = 'wait'), json_group_object(bucket, runs) filter (where kind = 'run')
from parts where true group by minute, task, lane
on conflict do update set completed = completed + excluded.completed, failed = failed + excluded.failed,
    cancelled = cancelled + excluded.cancelled, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms,
    wait_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_minutes.wait_histogram)
                union all
                select key, value from json_each(excluded.wait_histogram)
            ) group by key
        )
    ),
    run_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_minutes.run_histogram)
                union all
                select key, value from json_each(excluded.run_histogram)
            ) group by key
        )
    );
with ended as materialized (
    {ended_runs}
)
insert into windlass_run_times (task, runs, wait_ms, duration_ms, wait_histogram, run_histogram)
select task, sum(ended), sum(wait_ms), sum(duration_ms),
    json_group_object(bucket, runs) filter (where kind = 'wait'), json_group_object(bucket, runs) filter (where kind = 'run')
from ended where true group by task
on conflict do update set runs = runs + excluded.runs, wait_ms = wait_ms + excluded.wait_ms,
    duration_ms = duration_ms + excluded.duration_ms,
    wait_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_run_times.wait_histogram)
                union all
                select key, value from json_each(excluded.wait_histogram)
            ) group by key
        )
    ),
    run_histogram = (
        select json_group_object(bucket, runs) from (
            select key as bucket, sum(value) as runs from (
                select key, value from json_each(windlass_run_times.run_histogram)
                union all
                select key, value from json_each(excluded.run_histogram)
            ) group by key
        )
    );
delete from windlass_run_deltas where (minute, task, lane, status, reason, wait_bucket, run_bucket) in (
    select minute, task, lane, status, reason, wait_bucket, run_bucket from {taken_runs} as taken
);
select changes()

-- name: prune_minutes
delete from windlass_minutes where rowid in (
    select rowid from windlass_minutes where minute < {now} - :keep_for order by minute limit :limit
);
select changes()

-- name: job_stats
select count(x.number) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')),
    count(*) filter (where x.status = 'completed'), count(*) filter (where x.status = 'failed'),
    sum((x.finished_at - x.started_at) / 1000) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')),
    max(coalesce(max(x.started_at), j.started_at), coalesce(j.started_at, max(x.started_at))),
    case when j.state in ('scheduled', 'pending') then j.run_at end
from windlass_jobs j left join windlass_executions x on x.job_id = j.id
where j.id = :job_id group by j.id, j.started_at, j.state, j.run_at

-- name: list_newest_runs
-- Numbers have no gaps, so the newest are those next to the job's own count.
select x.job_id, x.number, x.attempt, x.status, x.reason, x.worker, x.started_at, x.finished_at, x.wait_ms, substr(x.error, 1, 500)
from windlass_jobs j cross join windlass_executions x on x.job_id = j.id and x.number > j.executions - :limit
where j.id in (select value from json_each(:ids))
order by x.job_id, x.number

-- name: list_newest_children
select c.parent_id, c.id, c.state, c.created_at from json_each(:ids) as p cross join windlass_jobs as c
on c.id in (select k.id from windlass_jobs k where k.parent_id = p.value order by k.id desc limit :limit)
order by c.parent_id, c.id

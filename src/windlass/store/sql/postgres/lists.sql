-- name: id_floor
-- Numbers are given out almost in the order of time: halving finds where a time begins with one probe for each bit.
with recursive search (low, high) as (
    select coalesce(min(id), 0), coalesce(max(id), 0) + 1 from windlass_jobs
    union all
    select case when p.created_at < :since::timestamptz then p.id + 1 else s.low end,
        case when p.created_at < :since::timestamptz then s.high else (s.low + s.high) / 2 end
    from search s cross join lateral (
        select j.id, j.created_at from windlass_jobs j where j.id >= (s.low + s.high) / 2 order by j.id limit 1
    ) as p
    where s.low < s.high
)
select max(low) from search

-- name: list_subject_{direction}
-- Compared as pairs: with a plain equality the order could be had from the primary key, by stepping over the jobs of all
-- other subjects.
{list_head}
select {listed} from windlass_jobs j where j.subject is not null
    and (j.subject, j.id) > (:subject::text, :above::bigint) and (j.subject, j.id) < (:subject::text, :below::bigint)
    order by j.subject {down}, j.id {down} limit {most_listed}
{list_tail}

-- name: list_correlation_{direction}
{list_head}
select {listed} from windlass_jobs j where j.correlation_id is not null
    and (j.correlation_id, j.id) > (:correlation_id::text, :above::bigint)
        and (j.correlation_id, j.id) < (:correlation_id::text, :below::bigint)
    order by j.correlation_id {down}, j.id {down} limit {most_listed}
{list_tail}

-- name: list_own_{direction}
-- A job's own UUID means the job and its children, beside those that carry it as their correlation id.
{list_head}
select {listed} from windlass_jobs j where j.id = any(array(
        (select k.id from windlass_jobs k where k.correlation_id is not null
            and (k.correlation_id, k.id) > (:correlation_id::text, :above::bigint)
            and (k.correlation_id, k.id) < (:correlation_id::text, :below::bigint)
         order by k.correlation_id {down}, k.id {down} limit {most_listed})
        union select k.id from windlass_jobs k where k.id = :own::bigint and k.id > :above::bigint and k.id < :below::bigint
        union (select k.id from windlass_jobs k where k.parent_id is not null
            and (k.parent_id, k.id) > (:own::bigint, :above::bigint) and (k.parent_id, k.id) < (:own::bigint, :below::bigint)
         order by k.parent_id {down}, k.id {down} limit {most_listed})
    )) order by j.id {down} limit {most_listed}
{list_tail}

-- name: list_parent_{direction}
{list_head}
select {listed} from windlass_jobs j where j.parent_id is not null
    and (j.parent_id, j.id) > (:parent_id::bigint, :above::bigint)
        and (j.parent_id, j.id) < (:parent_id::bigint, :below::bigint)
    order by j.parent_id {down}, j.id {down} limit {most_listed}
{list_tail}

-- name: list_gathered_{direction}
-- The first of each slice: no more rows than slices times a share, and a text that does not grow with them.
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text, state text) cross join lateral (
        select k.* from windlass_jobs k where k.task = s.task and k.lane = s.lane and k.state = s.state and k.token is null
        and -k.id < -:above::bigint and -k.id > -:below::bigint order by -k.id {up} limit :share::integer
    ) as j
    union all
    select {listed} from windlass_jobs j
    where j.token is not null and j.id > :above::bigint and j.id < :below::bigint and {list_sliced}
{list_tail}

-- name: list_slices_{direction}_arm
(select {listed} from windlass_jobs j
 where j.token is null and j.task = (select :task_{i}::text) and j.lane = (select :lane_{i}::text)
   and j.state = (select :state_{i}::text) and -j.id < -:above::bigint and -j.id > -:below::bigint order by -j.id {up} limit {most_listed})

-- name: list_slices_{direction}
-- For pages so deep that gathering would read too much. The values come from subqueries, so that the plan does not depend on
-- them.
{list_head}
select * from ({arms}
union all (select {listed} from windlass_jobs j where j.token is not null and j.id > :above::bigint
    and j.id < :below::bigint and {list_sliced}
 order by -j.id {up} limit {most_listed})) as slices order by rank {up} limit {most_listed}
{list_tail}

-- name: list_closed_{direction}_arm
(select {listed} from windlass_jobs j
 where j.closed_at is not null and j.state = (select :state_{i}::text)
     and (j.closed_at, j.id) {before} (:edge_at::timestamptz, :edge_id::bigint)
 order by j.closed_at {down}, j.id {down} limit {most_listed})

-- name: list_closed_{direction}
{list_head}
select * from ({arms}) as slices order by closed_at {down}, id {down} limit {most_listed}
{list_tail}

-- name: list_due_{direction}
{list_head}
select * from ((select {listed} from windlass_jobs j where j.state = 'scheduled' and not j.spawn
    and (j.run_at, j.id) {before} (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at {down}, j.id {down} limit {most_listed})
union all (select {listed} from windlass_jobs j where j.state = 'scheduled' and j.spawn
    and (j.run_at, j.id) {before} (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at {down}, j.id {down} limit {most_listed})) as slices order by run_at {down}, id {down} limit {most_listed}
{list_tail}

-- name: list_waiting_{direction}
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text) cross join lateral (
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes = 0 and k.lane = s.lane and k.task = s.task
           and (~k.priority, k.run_at, k.id) {after} (~:edge_priority::bigint, :edge_at::timestamptz, :edge_id::bigint)
         order by ~k.priority {up}, k.run_at {up}, k.id {up} limit :share::integer)
        union all
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes > 0 and k.lane = s.lane and k.task = s.task
           and (~k.priority, k.run_at, k.id) {after} (~:edge_priority::bigint, :edge_at::timestamptz, :edge_id::bigint)
         order by ~k.priority {up}, k.run_at {up}, k.id {up} limit :share::integer)
    ) as j
{list_tail}

-- name: identity
select database_id || '@' || current_database() from windlass_gates

-- name: list_tree
with recursive above (id, parent_id, steps) as (
    select j.id, j.parent_id, 0 from windlass_jobs j where j.id = :job_id::bigint
    union all
    select j.id, j.parent_id, a.steps + 1 from above a join windlass_jobs j on j.id = a.parent_id where a.steps < 20
), tree (id, depth) as (
    (select id, 0 from above order by steps desc limit 1)
    union all
    select k.id, t.depth + 1 from tree t cross join lateral (
        select j.id from windlass_jobs j where j.parent_id = t.id order by j.id limit {most_related}
    ) as k
    where t.depth < 20
), page as materialized (select id, depth from tree limit {most_related})
select p.depth, {job_columns} from page p join windlass_jobs j on j.id = p.id join windlass_bodies b on b.job_id = p.id
order by p.depth, p.id

-- name: fold_runs
-- Written in key order, so that two processes folding at once cannot deadlock; the second adds to what the first has written.
with taken as materialized (
    delete from windlass_run_deltas where id in (
        select id from windlass_run_deltas order by id limit :limit::integer for update skip locked
    ) returning minute, task, lane, status, reason, wait_bucket, run_bucket, runs, wait_ms, duration_ms
), counted as materialized (
    select minute, task, lane, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from taken
    where reason not in ('released', 'snoozed')
    union all
    select minute, '', lane, status, wait_bucket, run_bucket, runs, wait_ms, duration_ms from taken
    where reason not in ('released', 'snoozed')
), parts as materialized (
    {run_parts}
), totals as (
    insert into windlass_totals (task, status, reason, runs, wait_ms, duration_ms)
    select task, status, reason, sum(runs), sum(wait_ms), sum(duration_ms) from taken group by 1, 2, 3 order by 1, 2, 3
    on conflict (task, status, reason) do update set runs = windlass_totals.runs + excluded.runs,
        wait_ms = windlass_totals.wait_ms + excluded.wait_ms, duration_ms = windlass_totals.duration_ms + excluded.duration_ms
), minutes as (
    insert into windlass_minutes (
        minute, task, lane, completed, failed, cancelled, wait_ms, duration_ms, wait_histogram, run_histogram
    )
    select minute, task, lane, sum(completed), sum(failed), sum(cancelled), sum(wait_ms), sum(duration_ms),
        json_object_agg(bucket, runs) filter (where kind = 'wait'), json_object_agg(bucket, runs) filter (where kind = 'run')
    from parts group by minute, task, lane order by task, minute, lane
    on conflict (task, minute, lane) do update set
        completed = windlass_minutes.completed + excluded.completed, failed = windlass_minutes.failed + excluded.failed,
        cancelled = windlass_minutes.cancelled + excluded.cancelled, wait_ms = windlass_minutes.wait_ms + excluded.wait_ms,
        duration_ms = windlass_minutes.duration_ms + excluded.duration_ms,
        wait_histogram = windlass_merged(windlass_minutes.wait_histogram, excluded.wait_histogram),
        run_histogram = windlass_merged(windlass_minutes.run_histogram, excluded.run_histogram)
), ended as materialized (
    select task, kind, bucket, sum(runs) as runs, sum(completed + failed + cancelled) as ended, sum(wait_ms) as wait_ms,
        sum(duration_ms) as duration_ms
    from parts where task <> '' group by task, kind, bucket
), times as (
    insert into windlass_run_times (task, runs, wait_ms, duration_ms, wait_histogram, run_histogram)
    select task, sum(ended), sum(wait_ms), sum(duration_ms),
        json_object_agg(bucket, runs) filter (where kind = 'wait'), json_object_agg(bucket, runs) filter (where kind = 'run')
    from ended group by task order by task
    on conflict (task) do update set runs = windlass_run_times.runs + excluded.runs,
        wait_ms = windlass_run_times.wait_ms + excluded.wait_ms,
        duration_ms = windlass_run_times.duration_ms + excluded.duration_ms,
        wait_histogram = windlass_merged(windlass_run_times.wait_histogram, excluded.wait_histogram),
        run_histogram = windlass_merged(windlass_run_times.run_histogram, excluded.run_histogram)
)
select count(*) from taken

-- name: prune_minutes
with pruned as (
    delete from windlass_minutes where ctid = any(array(
        select ctid from windlass_minutes where minute < {now} - :keep_for::interval order by minute
            limit :limit::integer for update skip locked
    )) returning 1
)
select count(*) from pruned

-- name: job_stats
select count(x.number) filter (where coalesce(x.reason, '') not in ('released', 'snoozed')), count(*)
    filter (where x.status = 'completed'),
    count(*) filter (where x.status = 'failed'),
    (sum(floor(extract(epoch from x.finished_at - x.started_at) * 1000))
        filter (where coalesce(x.reason, '') not in ('released', 'snoozed')))::bigint,
    greatest(max(x.started_at), j.started_at),
    case when j.state in ('scheduled', 'pending') then j.run_at end
from windlass_jobs j left join windlass_executions x on x.job_id = j.id
where j.id = :job_id::bigint group by j.id, j.started_at, j.state, j.run_at

-- name: list_newest_runs
-- Numbers have no gaps, so the newest are those next to the job's own count. The limit inside keeps each job's runs a look by key.
select x.job_id, x.number, x.attempt, x.status, x.reason, x.worker, x.started_at, x.finished_at, x.wait_ms, x.error
from windlass_jobs j cross join lateral (
    select e.job_id, e.number, e.attempt, e.status, e.reason, e.worker, e.started_at, e.finished_at, e.wait_ms,
        substr(e.error, 1, 500) as error
    from windlass_executions e where e.job_id = j.id and e.number > j.executions - :limit::integer
    order by e.number desc limit 100
) as x
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by x.job_id, x.number

-- name: list_newest_children
select c.parent_id, c.id, c.state, c.created_at
from (select value::bigint as id from json_array_elements_text(:ids::json)) as p cross join lateral (
    select k.parent_id, k.id, k.state, k.created_at from windlass_jobs k where k.parent_id = p.id
    order by k.id desc limit :limit::integer
) as c
order by c.parent_id, c.id

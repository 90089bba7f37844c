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

-- name: list_all_newest
-- Every list looks at candidates in an order that an index has, no more than it needs or than a bound, and keeps what
-- matches. The limits inside are literals, as in the claim.
{list_head}
select {listed} from windlass_jobs j where j.id > :above::bigint and j.id < :below::bigint
    order by j.id desc limit 10501
{list_tail}

-- name: list_all_oldest
{list_head}
select {listed} from windlass_jobs j where j.id > :above::bigint and j.id < :below::bigint
    order by j.id limit 10501
{list_tail}

-- name: list_subject_newest
-- Compared as pairs: with a plain equality the order could be had from the primary key, by stepping over the jobs of all
-- other subjects.
{list_head}
select {listed} from windlass_jobs j where j.subject is not null
    and (j.subject, j.id) > (:subject::text, :above::bigint) and (j.subject, j.id) < (:subject::text, :below::bigint)
    order by j.subject desc, j.id desc limit 10501
{list_tail}

-- name: list_subject_oldest
{list_head}
select {listed} from windlass_jobs j where j.subject is not null
    and (j.subject, j.id) > (:subject::text, :above::bigint) and (j.subject, j.id) < (:subject::text, :below::bigint)
    order by j.subject, j.id limit 10501
{list_tail}

-- name: list_correlation_newest
{list_head}
select {listed} from windlass_jobs j where j.correlation_id is not null
    and (j.correlation_id, j.id) > (:correlation_id::text, :above::bigint)
        and (j.correlation_id, j.id) < (:correlation_id::text, :below::bigint)
    order by j.correlation_id desc, j.id desc limit 10501
{list_tail}

-- name: list_correlation_oldest
{list_head}
select {listed} from windlass_jobs j where j.correlation_id is not null
    and (j.correlation_id, j.id) > (:correlation_id::text, :above::bigint)
        and (j.correlation_id, j.id) < (:correlation_id::text, :below::bigint)
    order by j.correlation_id, j.id limit 10501
{list_tail}

-- name: list_own_newest
-- A job's own UUID means the job and its children, beside those that carry it as their correlation id.
{list_head}
select {listed} from windlass_jobs j where j.id = any(array(
        (select k.id from windlass_jobs k where k.correlation_id is not null
            and (k.correlation_id, k.id) > (:correlation_id::text, :above::bigint)
            and (k.correlation_id, k.id) < (:correlation_id::text, :below::bigint)
         order by k.correlation_id desc, k.id desc limit 10501)
        union select k.id from windlass_jobs k where k.id = :own::bigint and k.id > :above::bigint and k.id < :below::bigint
        union (select k.id from windlass_jobs k where k.parent_id is not null
            and (k.parent_id, k.id) > (:own::bigint, :above::bigint) and (k.parent_id, k.id) < (:own::bigint, :below::bigint)
         order by k.parent_id desc, k.id desc limit 10501)
    )) order by j.id desc limit 10501
{list_tail}

-- name: list_own_oldest
-- As above, from the other end.
{list_head}
select {listed} from windlass_jobs j where j.id = any(array(
        (select k.id from windlass_jobs k where k.correlation_id is not null
            and (k.correlation_id, k.id) > (:correlation_id::text, :above::bigint)
            and (k.correlation_id, k.id) < (:correlation_id::text, :below::bigint)
         order by k.correlation_id, k.id limit 10501)
        union select k.id from windlass_jobs k where k.id = :own::bigint and k.id > :above::bigint and k.id < :below::bigint
        union (select k.id from windlass_jobs k where k.parent_id is not null
            and (k.parent_id, k.id) > (:own::bigint, :above::bigint) and (k.parent_id, k.id) < (:own::bigint, :below::bigint)
         order by k.parent_id, k.id limit 10501)
    )) order by j.id limit 10501
{list_tail}

-- name: list_parent_newest
{list_head}
select {listed} from windlass_jobs j where j.parent_id is not null
    and (j.parent_id, j.id) > (:parent_id::bigint, :above::bigint)
        and (j.parent_id, j.id) < (:parent_id::bigint, :below::bigint)
    order by j.parent_id desc, j.id desc limit 10501
{list_tail}

-- name: list_parent_oldest
{list_head}
select {listed} from windlass_jobs j where j.parent_id is not null
    and (j.parent_id, j.id) > (:parent_id::bigint, :above::bigint)
        and (j.parent_id, j.id) < (:parent_id::bigint, :below::bigint)
    order by j.parent_id, j.id limit 10501
{list_tail}

-- name: list_recurring_newest
{list_head}
select {listed} from windlass_jobs j where j.cadence is not null and j.id > :above::bigint and j.id < :below::bigint
    order by j.id desc limit 10501
{list_tail}

-- name: list_recurring_oldest
{list_head}
select {listed} from windlass_jobs j where j.cadence is not null and j.id > :above::bigint and j.id < :below::bigint
    order by j.id limit 10501
{list_tail}

-- name: list_gathered_newest
-- The first of each slice: no more rows than slices times a share, and a text that does not grow with them.
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text, state text) cross join lateral (
        select k.* from windlass_jobs k where k.task = s.task and k.lane = s.lane and k.state = s.state and k.token is null
        and -k.id < -:above::bigint and -k.id > -:below::bigint order by -k.id limit :share::integer
    ) as j
    union all
    select {listed} from windlass_jobs j
    where j.token is not null and j.id > :above::bigint and j.id < :below::bigint and {list_sliced}
{list_tail}

-- name: list_gathered_oldest
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text, state text) cross join lateral (
        select k.* from windlass_jobs k where k.task = s.task and k.lane = s.lane and k.state = s.state and k.token is null
        and -k.id < -:above::bigint and -k.id > -:below::bigint order by -k.id desc limit :share::integer
    ) as j
    union all
    select {listed} from windlass_jobs j
    where j.token is not null and j.id > :above::bigint and j.id < :below::bigint and {list_sliced}
{list_tail}

-- name: list_slices_newest_arm
(select {listed} from windlass_jobs j
 where j.token is null and j.task = (select :task_{i}::text) and j.lane = (select :lane_{i}::text)
   and j.state = (select :state_{i}::text) and -j.id < -:above::bigint and -j.id > -:below::bigint order by -j.id limit 10501)

-- name: list_slices_newest
-- For pages so deep that gathering would read too much. The values come from subqueries, so that the plan does not depend on
-- them.
{list_head}
select * from ({arms}
union all (select {listed} from windlass_jobs j where j.token is not null and j.id > :above::bigint
    and j.id < :below::bigint and {list_sliced}
 order by -j.id limit 10501)) as slices order by rank limit 10501
{list_tail}

-- name: list_slices_oldest_arm
(select {listed} from windlass_jobs j
 where j.token is null and j.task = (select :task_{i}::text) and j.lane = (select :lane_{i}::text)
   and j.state = (select :state_{i}::text) and -j.id < -:above::bigint and -j.id > -:below::bigint
       order by -j.id desc limit 10501)

-- name: list_slices_oldest
{list_head}
select * from ({arms}
union all (select {listed} from windlass_jobs j where j.token is not null and j.id > :above::bigint
    and j.id < :below::bigint and {list_sliced}
 order by -j.id desc limit 10501)) as slices order by rank desc limit 10501
{list_tail}

-- name: list_closed_newest_arm
(select {listed} from windlass_jobs j
 where j.closed_at is not null and j.state = (select :state_{i}::text)
     and (j.closed_at, j.id) < (:edge_at::timestamptz, :edge_id::bigint)
 order by j.closed_at desc, j.id desc limit 10501)

-- name: list_closed_newest
{list_head}
select * from ({arms}) as slices order by closed_at desc, id desc limit 10501
{list_tail}

-- name: list_closed_oldest_arm
(select {listed} from windlass_jobs j
 where j.closed_at is not null and j.state = (select :state_{i}::text)
     and (j.closed_at, j.id) > (:edge_at::timestamptz, :edge_id::bigint)
 order by j.closed_at, j.id limit 10501)

-- name: list_closed_oldest
{list_head}
select * from ({arms}) as slices order by closed_at, id limit 10501
{list_tail}

-- name: list_due_newest
{list_head}
select * from ((select {listed} from windlass_jobs j where j.state = 'scheduled' and not j.spawn
    and (j.run_at, j.id) < (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at desc, j.id desc limit 10501)
union all (select {listed} from windlass_jobs j where j.state = 'scheduled' and j.spawn
    and (j.run_at, j.id) < (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at desc, j.id desc limit 10501)) as slices order by run_at desc, id desc limit 10501
{list_tail}

-- name: list_due_oldest
{list_head}
select * from ((select {listed} from windlass_jobs j where j.state = 'scheduled' and not j.spawn
    and (j.run_at, j.id) > (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at, j.id limit 10501)
union all (select {listed} from windlass_jobs j where j.state = 'scheduled' and j.spawn
    and (j.run_at, j.id) > (:edge_at::timestamptz, :edge_id::bigint)
 order by j.run_at, j.id limit 10501)) as slices order by run_at, id limit 10501
{list_tail}

-- name: list_waiting_newest
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text) cross join lateral (
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes = 0 and k.lane = s.lane and k.task = s.task
           and k.priority <= :edge_priority::bigint
           and (k.priority < :edge_priority::bigint or (k.run_at, k.id) > (:edge_at::timestamptz, :edge_id::bigint))
         order by k.priority desc, k.run_at, k.id limit :share::integer)
        union all
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes > 0 and k.lane = s.lane and k.task = s.task
           and k.priority <= :edge_priority::bigint
           and (k.priority < :edge_priority::bigint or (k.run_at, k.id) > (:edge_at::timestamptz, :edge_id::bigint))
         order by k.priority desc, k.run_at, k.id limit :share::integer)
    ) as j
{list_tail}

-- name: list_waiting_oldest
{list_head}
select {listed} from json_to_recordset(:slices::json) as s (task text, lane text) cross join lateral (
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes = 0 and k.lane = s.lane and k.task = s.task
           and k.priority >= :edge_priority::bigint
           and (k.priority > :edge_priority::bigint or (k.run_at, k.id) < (:edge_at::timestamptz, :edge_id::bigint))
         order by k.priority, k.run_at desc, k.id desc limit :share::integer)
        union all
        (select k.* from windlass_jobs k
         where k.state = 'pending' and k.crashes > 0 and k.lane = s.lane and k.task = s.task
           and k.priority >= :edge_priority::bigint
           and (k.priority > :edge_priority::bigint or (k.run_at, k.id) < (:edge_at::timestamptz, :edge_id::bigint))
         order by k.priority, k.run_at desc, k.id desc limit :share::integer)
    ) as j
{list_tail}

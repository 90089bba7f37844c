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

-- name: list_all_newest
-- Every list looks at candidates in an order that an index has, no more than it needs or than a bound, and keeps what
-- matches.
{list_head}
select {listed} from windlass_jobs j not indexed 
    where j.id > :above and j.id < :below order by j.id desc limit 10501
{list_tail}

-- name: list_all_oldest
{list_head}
select {listed} from windlass_jobs j not indexed 
    where j.id > :above and j.id < :below order by j.id limit 10501
{list_tail}

-- name: list_subject_newest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_subjects 
    where j.subject = :subject and j.id > :above and j.id < :below order by j.id desc limit 10501
{list_tail}

-- name: list_subject_oldest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_subjects 
    where j.subject = :subject and j.id > :above and j.id < :below order by j.id limit 10501
{list_tail}

-- name: list_correlation_newest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_correlations 
    where j.correlation_id = :correlation_id and j.id > :above and j.id < :below order by j.id desc limit 10501
{list_tail}

-- name: list_correlation_oldest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_correlations 
    where j.correlation_id = :correlation_id and j.id > :above and j.id < :below order by j.id limit 10501
{list_tail}

-- name: list_own_newest
-- A job's own UUID means the job and its children, beside those that carry it as their correlation id.
{list_head}
select {listed} from windlass_jobs j where j.id in (
        select id from (select k.id from windlass_jobs k indexed by windlass_jobs_correlations
            where k.correlation_id = :correlation_id and k.id > :above and k.id < :below order by k.id desc limit 10501)
        union select k.id from windlass_jobs k where k.id = :own and k.id > :above and k.id < :below
        union select id from (select k.id from windlass_jobs k indexed by windlass_jobs_parents
            where k.parent_id = :own and k.id > :above and k.id < :below order by k.id desc limit 10501)
    ) order by j.id desc limit 10501
{list_tail}

-- name: list_own_oldest
-- As above, from the other end.
{list_head}
select {listed} from windlass_jobs j where j.id in (
        select id from (select k.id from windlass_jobs k indexed by windlass_jobs_correlations
            where k.correlation_id = :correlation_id and k.id > :above and k.id < :below order by k.id limit 10501)
        union select k.id from windlass_jobs k where k.id = :own and k.id > :above and k.id < :below
        union select id from (select k.id from windlass_jobs k indexed by windlass_jobs_parents
            where k.parent_id = :own and k.id > :above and k.id < :below order by k.id limit 10501)
    ) order by j.id limit 10501
{list_tail}

-- name: list_parent_newest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_parents 
    where j.parent_id = :parent_id and j.id > :above and j.id < :below order by j.id desc limit 10501
{list_tail}

-- name: list_parent_oldest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_parents 
    where j.parent_id = :parent_id and j.id > :above and j.id < :below order by j.id limit 10501
{list_tail}

-- name: list_recurring_newest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_recurring 
    where j.cadence is not null and j.id > :above and j.id < :below order by j.id desc limit 10501
{list_tail}

-- name: list_recurring_oldest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_recurring 
    where j.cadence is not null and j.id > :above and j.id < :below order by j.id limit 10501
{list_tail}

-- name: list_gathered_newest
-- The first of each slice: no more rows than slices times a share, and a text that does not grow with them.
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select k.id from windlass_jobs k indexed by windlass_jobs_listed
        where k.token is null and k.task = s.value ->> 'task' and k.lane = s.value ->> 'lane'
            and k.state = s.value ->> 'state'
          and k.id > :above and k.id < :below
        order by k.id desc limit :share
    )
    union all
    select {listed} from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
{list_tail}

-- name: list_gathered_oldest
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select k.id from windlass_jobs k indexed by windlass_jobs_listed
        where k.token is null and k.task = s.value ->> 'task' and k.lane = s.value ->> 'lane'
            and k.state = s.value ->> 'state'
          and k.id > :above and k.id < :below
        order by k.id limit :share
    )
    union all
    select {listed} from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
{list_tail}

-- name: list_slices_newest_arm
select j.id from windlass_jobs j indexed by windlass_jobs_listed
where j.token is null and j.task = :task_{i} and j.lane = :lane_{i} and j.state = :state_{i} and j.id > :above
    and j.id < :below

-- name: list_slices_newest
-- For pages so deep that gathering would read too much. SQLite merges the arms lazily by itself, and copies what they read
-- at each step: so only numbers go through it.
{list_head}
select {listed} from (
{arms}
union all select j.id from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
    order by id desc limit 10501) as slices cross join windlass_jobs j on j.id = slices.id
{list_tail}

-- name: list_slices_oldest_arm
select j.id from windlass_jobs j indexed by windlass_jobs_listed
where j.token is null and j.task = :task_{i} and j.lane = :lane_{i} and j.state = :state_{i} and j.id > :above
    and j.id < :below

-- name: list_slices_oldest
{list_head}
select {listed} from (
{arms}
union all select j.id from windlass_jobs j indexed by windlass_jobs_leased
    where j.token is not null and j.id > :above and j.id < :below and {list_sliced}
    order by id limit 10501) as slices cross join windlass_jobs j on j.id = slices.id
{list_tail}

-- name: list_closed_newest_arm
select {listed} from windlass_jobs j indexed by windlass_jobs_closed_at
where j.closed_at is not null and j.state = :state_{i} and (j.closed_at, j.id) < (:edge_at, :edge_id)

-- name: list_closed_newest
{list_head}
{arms}
    order by closed_at desc, id desc limit 10501
{list_tail}

-- name: list_closed_oldest_arm
select {listed} from windlass_jobs j indexed by windlass_jobs_closed_at
where j.closed_at is not null and j.state = :state_{i} and (j.closed_at, j.id) > (:edge_at, :edge_id)

-- name: list_closed_oldest
{list_head}
{arms}
    order by closed_at, id limit 10501
{list_tail}

-- name: list_due_newest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_scheduled
    where j.state = 'scheduled' and not j.spawn and (j.run_at, j.id) < (:edge_at, :edge_id)
    union all select {listed} from windlass_jobs j indexed by windlass_jobs_templates
    where j.state = 'scheduled' and j.spawn and (j.run_at, j.id) < (:edge_at, :edge_id)
    order by run_at desc, id desc limit 10501
{list_tail}

-- name: list_due_oldest
{list_head}
select {listed} from windlass_jobs j indexed by windlass_jobs_scheduled
    where j.state = 'scheduled' and not j.spawn and (j.run_at, j.id) > (:edge_at, :edge_id)
    union all select {listed} from windlass_jobs j indexed by windlass_jobs_templates
    where j.state = 'scheduled' and j.spawn and (j.run_at, j.id) > (:edge_at, :edge_id)
    order by run_at, id limit 10501
{list_tail}

-- name: list_waiting_newest
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_pending
            where k.state = 'pending' and k.crashes = 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority <= :edge_priority and (k.priority < :edge_priority or (k.run_at, k.id) > (:edge_at, :edge_id))
            order by k.priority desc, k.run_at, k.id limit :share
        )
        union all
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_suspects
            where k.state = 'pending' and k.crashes > 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority <= :edge_priority and (k.priority < :edge_priority or (k.run_at, k.id) > (:edge_at, :edge_id))
            order by k.priority desc, k.run_at, k.id limit :share
        )
    )
{list_tail}

-- name: list_waiting_oldest
{list_head}
select {listed} from json_each(:slices) as s cross join windlass_jobs j on j.id in (
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_pending
            where k.state = 'pending' and k.crashes = 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority >= :edge_priority and (k.priority > :edge_priority or (k.run_at, k.id) < (:edge_at, :edge_id))
            order by k.priority, k.run_at desc, k.id desc limit :share
        )
        union all
        select * from (
            select k.id from windlass_jobs k indexed by windlass_jobs_suspects
            where k.state = 'pending' and k.crashes > 0 and k.lane = s.value ->> 'lane' and k.task = s.value ->> 'task'
              and k.priority >= :edge_priority and (k.priority > :edge_priority or (k.run_at, k.id) < (:edge_at, :edge_id))
            order by k.priority, k.run_at desc, k.id desc limit :share
        )
    )
{list_tail}

-- name: list_correlation
-- A job without a correlation id shows its own number as one: then its children are meant too.
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id in (
    select id from (
        select id from windlass_jobs where correlation_id = :correlation_id and id > :after order by id limit 501
    ) as same
    union select id from windlass_jobs where id = :own and id > :after
    union select id from (
        select id from windlass_jobs where parent_id = :own and id > :after order by id limit 501
    ) as children
)
order by j.id limit 501

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
    limit 501
)
select p.depth, {job_columns} from tree p join windlass_jobs j on j.id = p.id join windlass_bodies b on b.job_id = p.id
order by p.depth, p.id

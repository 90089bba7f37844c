-- name: list_correlation
-- A job without a correlation id shows its own number as one: then its children are meant too.
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id = any(array(
    select id from (
        select id from windlass_jobs where correlation_id = :correlation_id::text and id > :after::bigint order by id limit 501
    ) as same
    union select id from windlass_jobs where id = :own::bigint and id > :after::bigint
    union select id from (
        select id from windlass_jobs where parent_id = :own::bigint and id > :after::bigint order by id limit 501
    ) as children
))
order by j.id limit 501

-- name: list_tree
with recursive above (id, parent_id, steps) as (
    select j.id, j.parent_id, 0 from windlass_jobs j where j.id = :job_id::bigint
    union all
    select j.id, j.parent_id, a.steps + 1 from above a join windlass_jobs j on j.id = a.parent_id where a.steps < 20
), tree (id, depth) as (
    (select id, 0 from above order by steps desc limit 1)
    union all
    select k.id, t.depth + 1 from tree t cross join lateral (
        select j.id from windlass_jobs j where j.parent_id = t.id order by j.id limit 501
    ) as k
    where t.depth < 20
), page as materialized (select id, depth from tree limit 501)
select p.depth, {job_columns} from page p join windlass_jobs j on j.id = p.id join windlass_bodies b on b.job_id = p.id
order by p.depth, p.id

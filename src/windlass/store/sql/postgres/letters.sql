-- name: get_letter
select {letter_columns} from windlass_dead_letters d where d.id = :id::bigint

-- name: list_letters_died
{letters_head}
select {letter_facts} from windlass_dead_letters d where (d.died_at, d.id) < (:edge_at::timestamptz, :edge_id::bigint)
    order by d.died_at desc, d.id desc limit 5001
{letters_tail}

-- name: list_letters_alike
{letters_head}
select {letter_facts} from windlass_dead_letters d where d.fingerprint = :fingerprint::text
    order by d.id desc limit 5001
{letters_tail}

-- name: list_letters_open
{letters_head}
select {letter_facts} from windlass_dead_letters d where d.closed_at is null and d.acknowledged_at is null
    order by d.job_id desc limit 5001
{letters_tail}

-- name: count_open_letters
select count(*) from (
    select 1 from windlass_dead_letters where closed_at is null and acknowledged_at is null limit 10001
) as open

-- name: group_letters
with newest as materialized (
    select d.id, d.fingerprint, d.deaths, d.died_at, d.task from windlass_dead_letters d
    where (:is_open::boolean is null or (d.closed_at is null and d.acknowledged_at is null) = :is_open::boolean)
    order by d.died_at desc, d.id desc limit 5001
), grouped as (
    select fingerprint, count(*) over w as letters, sum(deaths) over w as deaths, died_at, id, task,
        row_number() over (partition by fingerprint order by died_at desc, id desc) as place,
        (select count(*) from newest) as looked
    from newest window w as (partition by fingerprint)
)
select g.looked, g.fingerprint, g.letters, g.deaths::bigint, g.died_at, g.id, g.task,
    (select d.error from windlass_dead_letters d where d.id = g.id)
from grouped g where g.place = 1 order by g.died_at desc, g.id desc limit :limit::integer

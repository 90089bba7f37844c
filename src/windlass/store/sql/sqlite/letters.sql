-- name: get_letters
select id, job_id, task, lane, original_job, error, details, fingerprint, deaths, first_died_at, died_at,
    acknowledged_at, acknowledged_by, note, closed_at, closed_reason
from windlass_dead_letters where id in (select value from json_each(:ids))
order by id

-- name: lock_letters
-- The transaction has the file to itself.
select id from windlass_dead_letters where id in (select value from json_each(:ids)) and closed_at is null order by id

-- name: close_letters
update windlass_dead_letters set closed_at = {now}, closed_reason = :closed_reason
where closed_at is null and job_id in (select value from json_each(:ids))
returning id

-- name: acknowledge
update windlass_dead_letters set acknowledged_at = {now}, acknowledged_by = :by, note = :note
where id in (select value from json_each(:ids)) and acknowledged_at is null
returning id

-- name: highest_letter
select coalesce(max(id), 0) from windlass_dead_letters

-- name: page_letters
select id from windlass_dead_letters
where id > :after and id <= :until and (:task is null or task = :task)
  and (:fingerprint is null or fingerprint = :fingerprint) and (not :is_open or closed_at is null)
order by id limit :limit


-- name: get_letter
select {letter_columns} from windlass_dead_letters d where d.id = :id

-- name: list_letters_died
{letters_head}
select {letter_facts} from windlass_dead_letters d where (d.died_at, d.id) < (:edge_at, :edge_id)
    order by d.died_at desc, d.id desc limit 5001
{letters_tail}

-- name: list_letters_alike
{letters_head}
select {letter_facts} from windlass_dead_letters d where d.fingerprint = :fingerprint
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
    where (:is_open is null or (d.closed_at is null and d.acknowledged_at is null) = :is_open)
    order by d.died_at desc, d.id desc limit 5001
), grouped as (
    select fingerprint, count(*) over w as letters, sum(deaths) over w as deaths, died_at, id, task,
        row_number() over (partition by fingerprint order by died_at desc, id desc) as place,
        (select count(*) from newest) as looked
    from newest window w as (partition by fingerprint)
)
select g.looked, g.fingerprint, g.letters, g.deaths, g.died_at, g.id, g.task,
    (select d.error from windlass_dead_letters d where d.id = g.id)
from grouped g where g.place = 1 order by g.died_at desc, g.id desc limit :limit

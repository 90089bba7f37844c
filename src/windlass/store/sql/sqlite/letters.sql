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

-- name: pick_letters
-- Apart from the walk over all letters, which would have to pass every other one.
select id from windlass_dead_letters
where id in (select value from json_each(:ids)) and id > :after and id <= :until and (:task is null or task = :task)
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
select {letter_facts} from windlass_dead_letters d indexed by windlass_dead_letters_kinds
    where d.fingerprint = :fingerprint and (d.died_at, d.id) < (:edge_at, :edge_id)
    order by d.died_at desc, d.id desc limit 5001
{letters_tail}

-- name: list_letters_open
{letters_head}
select {letter_facts} from windlass_dead_letters d indexed by windlass_dead_letters_unsettled
    where d.closed_at is null and d.acknowledged_at is null and (d.died_at, d.id) < (:edge_at, :edge_id)
    order by d.died_at desc, d.id desc limit 5001
{letters_tail}

-- name: count_open_letters
select count(*) from (
    select 1 from windlass_dead_letters where closed_at is null and acknowledged_at is null limit 10001
) as open

-- name: group_letters
-- The newest are looked at, and grouped if they are meant: a walk to so many that are meant would have no end.
with newest as materialized (
    select d.id, d.fingerprint, d.deaths, d.died_at, d.task, d.closed_at is null and d.acknowledged_at is null as is_open
    from windlass_dead_letters d order by d.died_at desc, d.id desc limit 5001
), meant as materialized (
    select id, fingerprint, deaths, died_at, task from newest where :is_open is null or is_open = :is_open
)
{letter_groups}

-- name: group_open_letters
with newest as materialized (
    select d.id, d.fingerprint, d.deaths, d.died_at, d.task from windlass_dead_letters d indexed by windlass_dead_letters_unsettled
    where d.closed_at is null and d.acknowledged_at is null order by d.died_at desc, d.id desc limit 5001
), meant as materialized (select id, fingerprint, deaths, died_at, task from newest)
{letter_groups}

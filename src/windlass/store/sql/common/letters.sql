-- name: get_letters
select {letter_columns} from windlass_dead_letters d
where d.id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by d.id

-- name: lock_letters
-- Of two callers that mean one letter the second finds it closed.
select id from windlass_dead_letters
where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and closed_at is null
order by id for update

-- name: close_letters
update windlass_dead_letters set closed_at = {now}, closed_reason = :closed_reason::text
where closed_at is null and job_id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
returning id

-- name: highest_letter
select coalesce(max(id), 0) from windlass_dead_letters

-- name: page_letters
select id from windlass_dead_letters
where id > :after and id <= :until and (:task::text is null or task = :task::text)
  and (:fingerprint::text is null or fingerprint = :fingerprint::text) and (not :is_open::boolean or closed_at is null)
order by id limit :limit

-- name: page_letters_alike
-- Compared together: with a plain equality the order could be had from all letters, by stepping over those of other kinds.
select d.id from windlass_dead_letters d indexed by windlass_dead_letters_groups
where d.fingerprint >= :fingerprint::text and (d.fingerprint, d.id) > (:fingerprint::text, :after::bigint)
  and (d.fingerprint, d.id) <= (:fingerprint::text, :until::bigint)
  and (:task::text is null or d.task = :task::text) and (not :is_open::boolean or d.closed_at is null)
order by d.fingerprint, d.id limit :limit

-- name: pick_letters
-- Apart from the walk over all letters, which would have to pass every other one.
select id from windlass_dead_letters
where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and id > :after and id <= :until
  and (:task::text is null or task = :task::text)
  and (:fingerprint::text is null or fingerprint = :fingerprint::text) and (not :is_open::boolean or closed_at is null)
order by id limit :limit

-- name: get_letter
select {letter_columns} from windlass_dead_letters d where d.id = :id::bigint

-- name: list_letters_died
{letters_head}
select {letter_facts} from windlass_dead_letters d where (d.died_at, d.id) < (:edge_at::timestamptz, :edge_id::bigint)
    order by d.died_at desc, d.id desc limit {most_letters}
{letters_tail}

-- name: list_letters_open
{letters_head}
select {letter_facts} from windlass_dead_letters d indexed by windlass_dead_letters_unsettled
    where d.closed_at is null and d.acknowledged_at is null and (d.died_at, d.id) < (:edge_at::timestamptz, :edge_id::bigint)
    order by d.died_at desc, d.id desc limit {most_letters}
{letters_tail}

-- name: count_open_letters
select count(*) from (
    select 1 from windlass_dead_letters where closed_at is null and acknowledged_at is null limit {most_counted}
) as open

-- name: count_letters
-- The newest so many are looked at, whatever their age: a window with more than these has at least so many.
select count(*) filter (where died_at >= {now} - :hour::interval), count(*) filter (where died_at >= {now} - :day::interval),
    count(*) filter (where died_at >= {now} - :week::interval)
from (select d.died_at from windlass_dead_letters d order by d.died_at desc, d.id desc limit {most_letters}) as newest

-- name: has_kind
select exists (select 1 from windlass_dead_letters where fingerprint = :fingerprint::text)

-- name: edit_letter
update windlass_dead_letters set edited_payload = :payload::json, edited_by = :by::text, edited_at = {now}
where id = :id::bigint and closed_at is null
returning id

-- name: set_notes
update windlass_dead_letters set notes = :notes::json where id = :id::bigint returning id

-- name: lock_letter
select {letter_columns} from windlass_dead_letters d where d.id = :id::bigint for update

-- name: group_letters
-- The newest are looked at, and grouped if they are meant: a walk to so many that are meant would have no end.
with newest as materialized (
    select d.id, d.fingerprint, d.deaths, d.died_at, d.task, d.closed_at is null and d.acknowledged_at is null as is_open
    from windlass_dead_letters d order by d.died_at desc, d.id desc limit {most_letters}
), meant as materialized (
    select id, fingerprint, deaths, died_at, task from newest where :is_open::boolean is null or is_open = :is_open::boolean
)
{letter_groups}

-- name: group_open_letters
with newest as materialized (
    select d.id, d.fingerprint, d.deaths, d.died_at, d.task from windlass_dead_letters d indexed by windlass_dead_letters_unsettled
    where d.closed_at is null and d.acknowledged_at is null order by d.died_at desc, d.id desc limit :depth
), meant as materialized (select id, fingerprint, deaths, died_at, task from newest)
{letter_groups}

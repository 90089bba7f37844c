-- name: get_letters
select id, job_id, task, lane, original_job::text, error, details::text, fingerprint, deaths, first_died_at, died_at,
    acknowledged_at, acknowledged_by, note, closed_at, closed_reason
from windlass_dead_letters where id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
order by id

-- name: lock_letters
-- Of two callers that mean one letter the second finds it closed.
select id from windlass_dead_letters
where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and closed_at is null
order by id for update

-- name: close_letters
update windlass_dead_letters set closed_at = {now}, closed_reason = :closed_reason::text
where closed_at is null and job_id = any(array(select value::bigint from json_array_elements_text(:ids::json)))
returning id

-- name: acknowledge
with c as materialized (
    select id from windlass_dead_letters
    where id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and acknowledged_at is null
    order by id for update
)
update windlass_dead_letters d set acknowledged_at = {now}, acknowledged_by = :by::text, note = :note::text
from c where d.id = c.id
returning d.id

-- name: highest_letter
select coalesce(max(id), 0) from windlass_dead_letters

-- name: page_letters
select id from windlass_dead_letters
where id > :after and id <= :until and (:task::text is null or task = :task::text)
  and (:fingerprint::text is null or fingerprint = :fingerprint::text) and (not :is_open::boolean or closed_at is null)
order by id limit :limit

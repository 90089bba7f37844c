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

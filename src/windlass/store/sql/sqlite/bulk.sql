-- name: highest_job
select coalesce(max(id), 0) from windlass_jobs

-- name: window_end
select max(id) from (
    select id from windlass_jobs where id > :after and id <= :until order by id limit :window
)

-- name: page_ids
select j.id from windlass_jobs j where j.id > :after and j.id <= :until and {job_matches} order by j.id

-- name: matching_ids
-- Looked at again: what a rival changed since the page was read is no longer meant.
select j.id from windlass_jobs j where j.id in (select value from json_each(:ids)) and {job_matches} order by j.id

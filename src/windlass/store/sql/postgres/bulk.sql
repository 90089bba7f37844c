-- name: highest_job
select coalesce(max(id), 0) from windlass_jobs

-- name: window_end
select max(id) from (
    select id from windlass_jobs where id > :after and id <= :until order by id limit :window
) as seen

-- name: page_ids
select j.id from windlass_jobs j where j.id > :after and j.id <= :until and {job_matches} order by j.id

-- name: matching_ids
-- Locked and looked at again: what a rival changed since the page was read is no longer meant.
select j.id from windlass_jobs j
where j.id = any(array(select value::bigint from json_array_elements_text(:ids::json))) and {job_matches}
order by j.id for update of j

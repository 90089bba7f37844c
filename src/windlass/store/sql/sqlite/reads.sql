-- name: identity
select database_id from windlass_gates

-- name: get_jobs
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id in (select value from json_each(:ids))
order by j.id

-- name: list_jobs
select {job_columns} from windlass_jobs j join windlass_bodies b on b.job_id = j.id
where j.id > :after and (:state is null or j.state = :state) and (:task is null or j.task = :task)
order by j.id limit :limit

-- name: list_executions
select job_id, number, attempt, token, slot_at, worker, started_at, finished_at, wait_ms, status, reason, error, error_type,
    stack_trace, log_excerpt, cpu_time_ms, memory_peak_mb, items_crawled, items_indexed, metadata, result, stopped_at
from windlass_executions where job_id = :job_id and number < :before
order by number desc limit :limit

-- name: list_dead_letters
select id, job_id, task, lane, original_job, error, details, fingerprint, deaths, first_died_at, died_at,
    acknowledged_at, acknowledged_by, note, closed_at, closed_reason
from windlass_dead_letters where job_id = :job_id order by id

-- name: count_jobs
select task, lane, state, wait_reason, sum(jobs) from (
    select task, lane, state, wait_reason, jobs from windlass_counts
    union all
    select task, lane, state, wait_reason, jobs from windlass_count_deltas
) as counted group by task, lane, state, wait_reason having sum(jobs) <> 0 order by 1, 2, 3, 4

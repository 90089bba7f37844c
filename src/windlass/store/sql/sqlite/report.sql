-- name: report_case
-- Without the payload, which may be large and decides nothing.
select id, task, lane, '{}', {claimed_rest}, started_at, state, token is not null, stop_requested,
    done_reason, b.item_key, b.collection, {now},
    (select i.answer from windlass_idempotency i where i.job_id = windlass_jobs.id and i.key = :key)
from windlass_jobs join windlass_bodies b on b.job_id = id where id = :id

-- name: report_past
-- Its last run, and whether a worker has held it before; asked only where the lease alone does not say who may report.
select x.token, x.worker, x.reason, exists (
    select 1 from windlass_executions h where h.job_id = j.id and h.worker = :worker and h.token is not j.token
)
from windlass_jobs j left join windlass_executions x on x.job_id = j.id and x.number = j.executions
where j.id = :id

-- name: add_progress
update windlass_jobs as j set
    progress_count = j.progress_count + :seen, result_count = j.result_count + :added,
    last_cursor = coalesce(:cursor, j.last_cursor), progress_message = coalesce(:message, j.progress_message),
    last_progress_at = {now}, started_at = coalesce(j.started_at, {now}),
    lease_expires_at = coalesce(max(j.lease_expires_at, {now} + :lease), j.lease_expires_at), updated_at = {now}
where j.id = :id and j.token = :token and j.state = 'running'
returning result_count, lease_expires_at

-- name: insert_idempotency
insert into windlass_idempotency (job_id, key, token, answer, created_at)
values (:job_id, :key, :token, :answer, {now})
returning job_id

-- name: find_pull
select j.id, j.token, j.state, j.lane from windlass_jobs j where j.worker = :worker and j.pull_id = :pull_id

-- name: repull
-- Its first answer was lost, so the work begins only now and the lease with it.
update windlass_jobs set
    lease_expires_at = max(lease_expires_at, {now} + :lease), updated_at = {now}
where id = :id and token = :token and state = 'running'
returning {claimed_columns}

-- name: mark_pull
update windlass_jobs as j set pull_id = :pull_id where j.id = :id and j.token = :token and j.state = 'running'
returning id

-- name: job_status
select j.id, j.lane, j.state, j.wait_reason, j.stop_requested, j.done_reason, j.last_error from windlass_jobs j where j.id = :id

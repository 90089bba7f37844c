-- name: pick_{direction}
-- Only what the caller chooses from: however long the queue is, no more than these are read.
select id, run_at, grp from ({arms}) as slices order by run_at {down}, id {down} limit {most_candidates}

-- name: report_case
-- The job as a report finds it, read after its row was locked: a separate statement, because only a new snapshot sees what
-- the holder of the lock before us wrote. Without the payload, which may be large and decides nothing.
select j.id, j.task, j.lane, '{}', {claimed_rest}, j.started_at, j.state, j.token is not null, j.stop_requested,
    j.done_reason, b.item_key::text, b.collection, {now},
    (select i.answer::text from windlass_idempotency i where i.job_id = j.id and i.key = :key::text)
from windlass_jobs j join windlass_bodies b on b.job_id = j.id where j.id = :id

-- name: report_past
-- Its last run, and whether a worker has held it before; read only where the lease alone does not show who may report.
select x.token, x.worker, x.reason, exists (
    select 1 from windlass_executions h
    where h.job_id = j.id and h.worker = :worker::text and h.token is distinct from j.token
)
from windlass_jobs j left join windlass_executions x on x.job_id = j.id and x.number = j.executions
where j.id = :id

-- name: insert_idempotency
insert into windlass_idempotency (job_id, key, token, answer, created_at)
values (:job_id, :key, :token::bigint, :answer::json, {now})
returning job_id

-- name: find_pull
select j.id, j.token, j.state, j.lane from windlass_jobs j where j.worker = :worker and j.pull_id = :pull_id

-- name: mark_pull
update windlass_jobs as j set pull_id = :pull_id where j.id = :id and j.token = :token and j.state = 'running'
returning id

-- name: job_status
select j.id, j.lane, j.state, j.wait_reason, j.stop_requested, j.done_reason, j.last_error from windlass_jobs j where j.id = :id

-- name: add_progress
update windlass_jobs as j set
    progress_count = j.progress_count + :seen::bigint, result_count = j.result_count + :added::bigint,
    last_cursor = coalesce(:cursor::text, j.last_cursor), progress_message = coalesce(:message::text, j.progress_message),
    last_progress_at = {now}, started_at = coalesce(j.started_at, {now}),
    lease_expires_at = coalesce({greatest}(j.lease_expires_at, {now} + :lease::interval), j.lease_expires_at), updated_at = {now}
where j.id = :id and j.token = :token and j.state = 'running'
returning j.result_count, lease_expires_at

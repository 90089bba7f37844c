-- name: now
coalesce(:now::timestamptz, statement_timestamp())

-- name: claimed_columns
j.id, j.task, j.lane, (select b.payload::text from windlass_bodies b where b.job_id = j.id), j.priority, j.run_at, j.slot_at,
    j.attempt, j.max_attempts, j.executions, j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence,
    j.timeout_us, j.token, j.worker, j.claimed_at, j.lease_expires_at, j.subject, j.correlation_id, j.parent_id, j.last_cursor,
    j.progress_count, j.result_count, j.target_count

-- name: job_columns
j.id, j.task, j.lane, j.state, j.wait_reason, j.priority, j.base_priority, j.run_at, j.slot_at, j.attempt, j.max_attempts,
    j.executions, j.crashes, j.consecutive_failures, j.completed_runs, j.retry, j.cadence, j.spawn, j.timeout_us, j.token,
    j.worker, j.claimed_at, j.lease_expires_at, j.started_at, j.finished_at, j.closed_at, j.paused_at, j.held,
    j.stop_requested, j.rerun_at, j.rerun_slot_at, j.name, j.unique_key, j.unique_scope, j.unique_slot, j.child_key, j.subject,
    j.correlation_id, j.parent_id, j.last_error, j.last_error_at, j.last_cursor, j.progress_message, j.progress_count,
    j.result_count, j.target_count, j.last_progress_at, j.done_reason, j.created_at, j.updated_at, b.payload::text,
    b.metadata::text, b.description, b.item_key::text, b.collection, b.created_by, b.declared_by, b.declared_at

-- name: original_job
json_build_object('id', j.id, 'type', j.task, 'task', j.task, 'lane', j.lane, 'payload', b.payload, 'metadata', b.metadata,
    'priority', j.priority, 'base_priority', j.base_priority, 'run_at', to_char(j.run_at at time zone 'UTC', {iso}),
    'slot_at', to_char(j.slot_at at time zone 'UTC', {iso}), 'attempts', j.attempt, 'max_attempts', j.max_attempts,
    'retry', j.retry, 'cadence', j.cadence, 'timeout_us', j.timeout_us, 'name', j.name, 'unique_key', j.unique_key,
    'unique_scope', j.unique_scope, 'subject', j.subject, 'correlation_id', j.correlation_id, 'parent_id', j.parent_id,
    'created_by', b.created_by, 'created_at', to_char(j.created_at at time zone 'UTC', {iso}))

-- name: iso
'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'

-- name: epoch
timestamptz 'epoch'

-- name: us
interval '1 microsecond'

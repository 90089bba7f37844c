"""What the row of a new job is, so that whoever enqueued it need not read it."""

from __future__ import annotations

from datetime import datetime, timedelta

from windlass.core.job import Job, JobState, NewJob, WaitReason

_MICROSECOND = timedelta(microseconds=1)


def first_row(job: NewJob, number: int, now: datetime) -> Job:
    """Give the row that inserting a job at `now` made; what is not said here is empty in every new row."""
    run_at = job.run_at or now + (job.delay or timedelta())
    is_later = run_at > now
    is_recurring = job.recurrence is not None
    return Job(
        id=number,
        task=job.task,
        lane=job.lane,
        state=JobState.SCHEDULED if job.spawn or is_later else JobState.PENDING,
        wait_reason=WaitReason.RECURRENCE if is_recurring else WaitReason.DELAY if is_later else WaitReason.NEW,
        priority=job.priority,
        base_priority=job.priority,
        run_at=run_at,
        slot_at=(job.slot_at or run_at) if is_recurring else None,
        attempt=0,
        max_attempts=job.max_attempts,
        executions=0,
        crashes=0,
        consecutive_failures=0,
        completed_runs=0,
        retry=job.retry.encode(),
        cadence=None if job.recurrence is None else job.recurrence.encode(),
        spawn=job.spawn,
        timeout_us=None if job.timeout is None else job.timeout // _MICROSECOND,
        token=None,
        worker=None,
        claimed_at=None,
        lease_expires_at=None,
        started_at=None,
        finished_at=None,
        closed_at=None,
        paused_at=None,
        held=False,
        stop_requested=False,
        rerun_at=None,
        rerun_slot_at=None,
        name=job.name,
        unique_key=job.unique_key,
        unique_scope=None if job.unique_key is None else job.unique_scope,
        unique_slot=job.unique_key,
        child_key=job.child_key,
        subject=job.subject,
        correlation_id=job.correlation_id,
        parent_id=job.parent_id,
        last_error=None,
        last_error_at=None,
        last_cursor=None,
        progress_message=None,
        progress_count=0,
        result_count=0,
        target_count=job.target_count,
        last_progress_at=None,
        done_reason=None,
        created_at=now,
        updated_at=now,
        payload=job.payload,
        metadata=job.metadata,
        description=job.description,
        item_key=job.item_key,
        collection=job.collection,
        created_by=job.created_by,
        declared_by=job.declared_by,
        declared_at=None if job.declared_by is None else now,
    )

"""Jobs as they are kept: reading, counting and moving them by number, each in one transaction."""

from __future__ import annotations

from windlass.store.calls import clone, control, endings, lists, override, reads, related, work
from windlass.store.calls import report as reports
from windlass.store.noun import Noun, verb


class StoredJobs(Noun):
    """The verbs of jobs and their runs; those that move some return what each was left as."""

    clock, clock_sync = verb(work.clock)
    job_status, job_status_sync = verb(reports.job_status)
    cancel, cancel_sync = verb(control.cancel)
    stop_run, stop_run_sync = verb(control.stop_run)
    pause, pause_sync = verb(control.pause)
    resume, resume_sync = verb(control.resume)
    disable, disable_sync = verb(control.disable)
    enable, enable_sync = verb(control.enable)
    run_now, run_now_sync = verb(control.run_now)
    retry, retry_sync = verb(control.retry)
    boost, boost_sync = verb(control.boost)
    set_priority, set_priority_sync = verb(control.set_priority)
    override_status, override_status_sync = verb(override.override_status)
    clone, clone_sync = verb(clone.clone)
    delete, delete_sync = verb(control.delete)
    bury, bury_sync = verb(endings.bury)
    fail, fail_sync = verb(endings.fail)
    take_lease, take_lease_sync = verb(endings.take_lease)
    edit, edit_sync = verb(control.edit)
    get, get_sync = verb(reads.get_job)
    get_many, get_many_sync = verb(reads.get_jobs)
    list_jobs, list_jobs_sync = verb(lists.list_jobs)
    list_executions, list_executions_sync = verb(reads.list_executions)
    get_execution, get_execution_sync = verb(reads.get_execution)
    count_executions, count_executions_sync = verb(reads.count_executions)
    list_by_correlation, list_by_correlation_sync = verb(related.list_by_correlation)
    trace, trace_sync = verb(related.trace_correlation)
    trace_jobs, trace_jobs_sync = verb(related.trace_jobs)
    read_past, read_past_sync = verb(related.read_past)
    list_tree, list_tree_sync = verb(related.list_tree)
    list_dead_letters, list_dead_letters_sync = verb(reads.list_dead_letters)
    count_jobs, count_jobs_sync = verb(reads.count_jobs)
    count_task, count_task_sync = verb(reads.count_task)

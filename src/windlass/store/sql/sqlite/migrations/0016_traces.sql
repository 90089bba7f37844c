-- The trace an enqueuer was part of, for the runs to be linked to. Null costs a job nothing.
alter table windlass_jobs add column traceparent text;

-- What long runs have logged so far, written with the heartbeats of their worker. A table of its own, so that the rows of jobs
-- stay small; a line whose token is no longer its job's is read by nobody, and deleted by upkeep.
create table windlass_run_logs (
    job_id integer not null,
    token integer not null,
    log_excerpt text not null,
    primary key (job_id, token)
) strict;

-- How deep the queue was in each of the last minutes, the same for every server.
create table windlass_samples (
    minute integer primary key,
    waiting integer not null,
    oldest_us integer not null,
    running integer not null,
    retrying integer not null,
    in_per_second real not null
) strict;

-- What long runs have logged so far, written with the heartbeats of their worker. A table of its own, so that the rows of jobs
-- stay small; a line whose token is no longer its job's is read by nobody, and deleted by upkeep.
create table windlass_run_logs (
    job_id bigint not null,
    token bigint not null,
    log_excerpt text not null,
    primary key (job_id, token)
);

-- How deep the queue was in each of the last minutes, the same for every server.
create table windlass_samples (
    minute timestamptz primary key,
    waiting bigint not null,
    oldest_us bigint not null,
    running bigint not null,
    retrying bigint not null,
    in_per_second double precision not null
);

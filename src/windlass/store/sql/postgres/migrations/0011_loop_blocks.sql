-- How many times a handler was found to block the event loop of a worker since it started.
alter table windlass_workers add column loop_blocks bigint not null default 0;

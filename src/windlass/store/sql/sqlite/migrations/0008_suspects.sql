-- A job whose last run ended in a lost lease is a suspect: it has an index of its own, so that a claim never meets one.
drop index windlass_jobs_pending;
create index windlass_jobs_pending on windlass_jobs (lane, task, priority desc, run_at, id)
    where state = 'pending' and crashes = 0;
create index windlass_jobs_suspects on windlass_jobs (lane, task, priority desc, run_at, id)
    where state = 'pending' and crashes > 0;

-- Which process a worker is: the machine since its start with the namespaces that process numbers are counted in, and the
-- start of the process in that machine's ticks. Without them only leases say whether it lives.
alter table windlass_workers add column place text;
alter table windlass_workers add column process_start integer;
create index windlass_workers_places on windlass_workers (place) where place is not null and stopped_at is null;

-- One row that every process writes now and then, to know that it can.
create table windlass_contact (id integer primary key check (id = 1), touched_at integer);

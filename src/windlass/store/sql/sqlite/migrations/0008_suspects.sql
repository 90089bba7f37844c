-- A job whose last run ended in a lost lease is a suspect: it has an index of its own, so that a claim never meets one.
drop index windlass_jobs_pending;
create index windlass_jobs_pending on windlass_jobs (lane, task, priority desc, run_at, id)
    where state = 'pending' and crashes = 0;
create index windlass_jobs_suspects on windlass_jobs (lane, task, priority desc, run_at, id)
    where state = 'pending' and crashes > 0;

-- A claim begins where its slice began when it was looked at. Before that place lie the entries of everything claimed since the
-- last vacuum, and a scan goes through all of them. Only a row of values that are sorted in one direction can be such a place: ~
-- turns the order of priorities round, and no number is too small for it.
drop index windlass_jobs_pending;
create index windlass_jobs_pending on windlass_jobs (lane, task, (~priority), run_at, id)
    where state = 'pending' and crashes = 0;
drop index windlass_jobs_suspects;
create index windlass_jobs_suspects on windlass_jobs (lane, task, (~priority), run_at, id)
    where state = 'pending' and crashes > 0;

-- The look for slices begins at the front all the same. By default a table of ten million jobs would be vacuumed after two million
-- changes; and a vacuum that finds few pages to clean leaves the indexes alone.
alter table windlass_jobs set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, vacuum_index_cleanup = on
);

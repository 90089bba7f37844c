-- name: fold_counts
-- Taken in key order, so that two processes folding at once cannot deadlock. As an array: a plain subquery may be run again
-- for each row, and would then take more than :limit.
with taken as materialized (
    delete from windlass_count_deltas where id = any(array(
        select id from windlass_count_deltas order by id limit :limit for update skip locked
    )) returning task, lane, state, wait_reason, jobs
), folded as (
    insert into windlass_counts (task, lane, state, wait_reason, jobs)
    select task, lane, state, wait_reason, sum(jobs) from taken group by 1, 2, 3, 4 order by 1, 2, 3, 4
    on conflict (task, lane, state, wait_reason) do update set jobs = windlass_counts.jobs + excluded.jobs
)
select count(*) from taken
